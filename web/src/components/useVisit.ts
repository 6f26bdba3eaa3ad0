/** The visit that this look at Home belongs to; the browser keeps it for each account. */

import { useEffect, useState } from 'react';
import { serverNow } from '../lib/clock';
import { readVisit, visit, type Visit } from '../lib/home';

const SEEN_MS = 60_000;
const keyOf = (user: string) => `corral.visit.${user}`;

function look(user: string): Visit {
  const now = visit(readVisit(localStorage.getItem(keyOf(user))), serverNow());
  localStorage.setItem(keyOf(user), JSON.stringify(now));
  return now;
}

/** Up to when the reader knew what happened, null on a first visit; and a way to say that he knows all up to now, or to a later time. */
export function useVisit(user: string): [number | null, (least: number) => void] {
  const [current, setCurrent] = useState<Visit | null>(null);
  useEffect(() => {
    if (!user) return;
    setCurrent(look(user));
    const timer = setInterval(() => document.visibilityState === 'visible' && setCurrent(look(user)), SEEN_MS);
    return () => clearInterval(timer);
  }, [user]);
  const know = (least: number) => {
    const at = Math.max(serverNow(), least); // the server's time is known to a second, and what is shown may be of this one
    const now = { seen: at, known: at };
    localStorage.setItem(keyOf(user), JSON.stringify(now));
    setCurrent(now);
  };
  return [current?.known ?? null, know];
}
