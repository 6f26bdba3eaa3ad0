/** The visit that this look at Home belongs to; the browser keeps it for each account. */

import { useEffect, useState } from 'react';
import { readVisit, visit, type Visit } from '../lib/home';

const SEEN_MS = 60_000;
const keyOf = (user: string) => `corral.visit.${user}`;

function look(user: string): Visit {
  const now = visit(readVisit(localStorage.getItem(keyOf(user))), Date.now());
  localStorage.setItem(keyOf(user), JSON.stringify(now));
  return now;
}

/** Up to when the reader knew what happened, null on a first visit; and a way to say that he knows it now. */
export function useVisit(user: string): [number | null, () => void] {
  const [current, setCurrent] = useState<Visit | null>(null);
  useEffect(() => {
    if (!user) return;
    setCurrent(look(user));
    const timer = setInterval(() => document.visibilityState === 'visible' && setCurrent(look(user)), SEEN_MS);
    return () => clearInterval(timer);
  }, [user]);
  const know = () => {
    const now = { seen: Date.now(), known: Date.now() };
    localStorage.setItem(keyOf(user), JSON.stringify(now));
    setCurrent(now);
  };
  return [current?.known ?? null, know];
}
