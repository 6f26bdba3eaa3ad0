/** What becomes another of a job that waits, and the command line that asks for the same. */

import { jobLine } from './cli';

export interface JobTerms {
  priority: string;
  /** Such as 2h; empty is no limit. */
  maxDuration: string;
  queue: string;
}

const UNITS: readonly [number, string][] = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'm'],
  [1, 's'],
];

/** Seconds as a job file writes them: `1h30m`; nothing for 0. */
export function writtenDuration(seconds: number): string {
  let rest = seconds;
  return UNITS.map(([size, unit]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return count > 0 ? `${count}${unit}` : '';
  }).join('');
}

/** What differs, as the API takes it. */
export function changedTerms(before: JobTerms, after: JobTerms): Partial<JobTerms> {
  const changed: Partial<JobTerms> = {};
  const priority = after.priority.trim();
  const maxDuration = after.maxDuration.trim();
  if (priority !== before.priority && priority !== '') changed.priority = priority;
  if (maxDuration !== before.maxDuration) changed.maxDuration = maxDuration || '0';
  if (after.queue !== before.queue) changed.queue = after.queue;
  return changed;
}

export function editLine(ref: string, changed: Partial<JobTerms>): string {
  const options = { priority: changed.priority, duration: changed.maxDuration, queue: changed.queue };
  return jobLine('edit', ref, ...Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value])));
}
