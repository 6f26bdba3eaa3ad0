/** The command line that does what a page or a button does. */

import type { JobFilter } from '../api/queries';
import { ENDED, type JobSummary } from '../api/types';

/** What is asked for by a priority class (`PRIORITY_CLASSES` in `corral/spec/priority.py`): it and those above; `oppo` is below 0. */
export const PRIORITIES: Record<string, { minPriority?: number; maxPriority?: number }> = {
  crit: { minPriority: 120 },
  prod: { minPriority: 100 },
  test: { minPriority: 10 },
  oppo: { maxPriority: -1 },
};

/** Quoted for a POSIX shell where it must be. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-][\w@%+=:,./~-]*$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export function listLine(filter: JobFilter): string {
  const words = ['corral', 'ls'];
  for (const state of filter.state?.split(',').filter(Boolean) ?? []) words.push('--state', state);
  if (filter.user) words.push('--user', filter.user);
  if (filter.queue) words.push('--queue', filter.queue);
  if (filter.tag) words.push('--tag', filter.tag);
  if (filter.q) words.push('--search', filter.q);
  const { minPriority, maxPriority } = PRIORITIES[filter.priority ?? ''] ?? {};
  if (minPriority !== undefined) words.push('--min-priority', String(minPriority));
  if (maxPriority !== undefined) words.push('--max-priority', String(maxPriority));
  return words.map(quote).join(' ');
}

/** What names this job and no other: a live job's name is its user's only one of that name, an ended one may have heirs. */
export function refOf(job: Pick<JobSummary, 'id' | 'name' | 'user' | 'state'>, me: string | undefined): string {
  if (ENDED.has(job.state)) return job.id;
  return job.user === me ? job.name : `${job.user}~${job.name}`;
}

/** What submits a file as the page does: the flags stand for what goes with its text. */
export function submitLine(given: { from?: string; parameters?: Record<string, string>; folder?: string }): string {
  const words = ['corral', 'submit', '-f', 'job.yaml'];
  for (const [name, value] of Object.entries(given.parameters ?? {})) words.push('--set', `${name}=${value}`);
  if (given.from) words.push('--from', given.from);
  if (given.folder) words.push('--code', given.folder);
  return words.map(quote).join(' ');
}

export function jobLine(action: string, ref: string, ...words: (string | number)[]): string {
  return ['corral', action, ref, ...words].map((word) => quote(String(word))).join(' ');
}

/** What adds and removes tags of jobs. */
export function tagLine(jobs: readonly Pick<JobSummary, 'id'>[], add: readonly string[], remove: readonly string[]): string {
  const words = ['corral', 'tag', ...jobs.map(({ id }) => id), ...add.flatMap((tag) => ['--add', tag]), ...remove.flatMap((tag) => ['--remove', tag])];
  return words.map(quote).join(' ');
}

/** What closes a node to new tasks, empties it, or opens it again. */
export function nodeLine(action: 'cordon' | 'drain' | 'uncordon', node: string, how: { why?: string; afterJobs?: boolean; grace?: number | null } = {}): string {
  const words = ['corral', action, node];
  if (how.afterJobs) words.push('--after-jobs');
  if (how.grace !== undefined && how.grace !== null) words.push('--grace', String(how.grace));
  if (action !== 'uncordon' && how.why) words.push('--why', how.why);
  return words.map(quote).join(' ');
}
