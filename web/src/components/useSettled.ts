/** A text once nobody has changed it for a moment, so that not every letter is asked about. */

import { useEffect, useState } from 'react';

const TYPING_MS = 250;

export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
