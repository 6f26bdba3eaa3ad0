/** The list of jobs as its reader sets it up: which columns it has, and its file for a spreadsheet. */

import { ENDED, type JobSummary } from '../api/types';
import { csv } from './usage';

/** The columns that a reader may leave out, in their order; state and name are always there. */
export const COLUMNS = ['user', 'queue', 'priority', 'tasks', 'devices', 'ran', 'submitted', 'why'] as const;
export type Column = (typeof COLUMNS)[number];
export const COLUMN_WORDS: Record<Column, string> = {
  user: 'User',
  queue: 'Queue',
  priority: 'Priority',
  tasks: 'Tasks',
  devices: 'Devices',
  ran: 'Ran',
  submitted: 'Submitted',
  why: 'Where, or why',
};

/** The columns left out that a stored text names; unknown names are of another version, and count as none. */
export function readHidden(text: string | null): ReadonlySet<Column> {
  const names = new Set((text ?? '').split(','));
  return new Set(COLUMNS.filter((each) => names.has(each)));
}

export const writeHidden = (hidden: ReadonlySet<Column>) => COLUMNS.filter((each) => hidden.has(each)).join(',');

const HEAD = ['id', 'name', 'user', 'queue', 'priority', 'state', 'tasks', 'devices', 'retries', 'submitted', 'started', 'ended', 'exit_code', 'exit', 'waits_because', 'tags'];

/** Jobs as CSV: one line each, times as the API gives them. */
export function jobsCsv(jobs: readonly JobSummary[]): string {
  const rows = jobs.map((job) => [
    job.id, job.name, job.user, job.queue, job.priority, job.state, job.tasks.total, job.devices, job.retries, job.createdAt, job.startedAt, job.endedAt,
    job.exit?.code ?? null, job.exit?.phrase ?? '', ENDED.has(job.state) ? '' : (job.waiting?.message ?? ''), job.tags.join(' '),
  ]);
  return csv([HEAD, ...rows]);
}
