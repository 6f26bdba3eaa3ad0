/** The history of a queue by week: how far its bars reach, and what they show in words. */

import type { QueueHistoryWeek } from '../api/types';
import { queues as texts } from '../texts/english/queues';
import { fill, number } from '../texts/fill';
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
  if (waitP50 === null || waitP95 === null) return texts.noJobStarted;
  return fill(texts.waited, { started: number(started), half: duration(Math.round(waitP50)), most: duration(Math.round(waitP95)) });
}

export function useWords({ used, borrowed, lent }: QueueHistoryWeek): string {
  if (borrowed === null || lent === null) return fill(texts.useUnknown, { used: hours(used) });
  return fill(texts.usedHours, { used: hours(used), borrowed: hours(borrowed), lent: hours(lent) });
}

export const historyLine = (queue: string) => `corral queues ${quote(queue)} --history`;
