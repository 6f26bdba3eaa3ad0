/** The list of jobs as its reader sets it up: which columns it has, and its file for a spreadsheet. */

import type { JobFilter } from '../api/queries';
import { ENDED, type JobSummary, type SavedFilter } from '../api/types';
import { list as texts } from '../texts/english/list';
import { fill } from '../texts/fill';
import { csv } from './usage';

/** What each of these jobs is called beside the others: its name, or USER~NAME where several have it; by id. */
export function toldApart(jobs: readonly Pick<JobSummary, 'id' | 'user' | 'name'>[]): ReadonlyMap<string, string> {
  const alike = (name: string, user?: string) => new Set(jobs.filter((each) => each.name === name && (user ?? each.user) === each.user).map(({ id }) => id)).size > 1;
  return new Map(
    jobs.map(({ id, user, name }) => {
      const alone = alike(name) ? `${user}~${name}` : name;
      return [id, alike(name, user) ? `${alone} (${id})` : alone];
    }),
  );
}

/** The columns that a reader may leave out, in their order; state and name are always there. */
export const COLUMNS = ['user', 'queue', 'priority', 'tasks', 'devices', 'ran', 'submitted', 'why'] as const;
export type Column = (typeof COLUMNS)[number];

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

/** The filter of the list that a saved one stands for. */
export function filterOf(saved: SavedFilter): JobFilter {
  const { name: _, state, ...words } = saved;
  const all = { ...words, state: (state ?? []).join(',') };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== '')) as JobFilter;
}

/** A filter of the list as it is saved. */
export function savedOf(name: string, filter: JobFilter): SavedFilter {
  const { state, user = '', queue = '', q = '', tag = '', order = '', group = '', priority = '' } = filter;
  return { name, state: (state?.split(',').filter(Boolean) ?? []) as SavedFilter['state'], user, queue, q, tag, order: order as SavedFilter['order'], group: group as SavedFilter['group'], priority: priority as SavedFilter['priority'] };
}

/** The tags that a text names, with commas between them. */
export const readTags = (text: string) => [...new Set(text.split(',').map((each) => each.trim()).filter(Boolean))];

const ARRAY = 'array:';

/** The tags of some jobs that people may remove: not those by which the server knows an array. */
export const ownTags = (jobs: readonly JobSummary[]) => [...new Set(jobs.flatMap(({ tags }) => tags))].filter((tag) => !tag.startsWith(ARRAY)).sort();

/** Jobs that belong together in the list. */
export interface Gathered {
  key: string;
  name: string;
  jobs: JobSummary[];
}

/** Which group a job is in: its user's, or the sweep of the jobs whose names differ by a number at the end. */
function groupOf(job: JobSummary, by: string): { key: string; name: string } {
  if (by === 'user') return { key: job.user, name: job.user };
  const stem = job.name.replace(/[-_.]?\d+$/, '') || job.name;
  const array = job.tags.find((tag) => tag.startsWith(ARRAY));
  return { key: array ?? `${job.user} ${stem}`, name: fill(texts.sweepOf, { sweep: stem, user: job.user }) };
}

/** The jobs in groups, in the order of each group's first job; sweeps of a single job are put together at the end. */
export function gathered(jobs: readonly JobSummary[], by: string): Gathered[] {
  const found = new Map<string, Gathered>();
  for (const job of jobs) {
    const { key, name } = groupOf(job, by);
    const group = found.get(key) ?? { key, name, jobs: [] };
    group.jobs.push(job);
    found.set(key, group);
  }
  const groups = [...found.values()];
  if (by === 'user') return groups;
  const single = groups.filter((each) => each.jobs.length === 1).flatMap((each) => each.jobs);
  const sweeps = groups.filter((each) => each.jobs.length > 1);
  return single.length > 0 ? [...sweeps, { key: ' ', name: texts.singleJobs, jobs: single }] : sweeps;
}
