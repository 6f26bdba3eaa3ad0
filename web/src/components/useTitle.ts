/** The window's title: the page's subject first, so that tabs can be told apart. */

import { useEffect } from 'react';

export function useTitle(subject: string): void {
  useEffect(() => {
    document.title = subject ? `${subject} · Corral` : 'Corral';
  }, [subject]);
}
