/** The history of a queue by week: how far its bars reach, and what they show in words. */

import type { QueueHistoryWeek } from '../api/types';
import { quote } from './cli';
import { duration } from './time';
import { hours } from './usage';

/** The longest wait and the most use of all weeks; at least 1, so that bars of nothing have a scale. */
export function scales(weeks: readonly QueueHistoryWeek[]): { wait: number; use: number } {
  return {
    wait: Math.max(1, ...weeks.map(({ waitP95 }) => waitP95 ?? 0)),
    use: Math.max(1, ...weeks.map(({ used, lent }) => Math.max(used, lent ?? 0))),
  };
}

export function waitWords({ started, waitP50, waitP95 }: QueueHistoryWeek): string {
  if (waitP50 === null || waitP95 === null) return 'no job started';
  return `${started.toLocaleString('en')} started: half waited at most ${duration(Math.round(waitP50))}, 95 % at most ${duration(Math.round(waitP95))}`;
}

export function useWords({ used, borrowed, lent }: QueueHistoryWeek): string {
  const known = borrowed === null || lent === null ? 'borrowed and lent not known' : `${hours(borrowed)} borrowed, ${hours(lent)} lent`;
  return `${hours(used)} device-hours held, ${known}`;
}

export const historyLine = (queue: string) => `corral queues ${quote(queue)} --history`;
