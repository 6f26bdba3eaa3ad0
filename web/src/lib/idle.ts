/** Jobs that leave their devices idle, in words: how they stand, what comes next, and who may ask for more time. */

import type { IdleJob, Me } from '../api/types';
import { quote } from './cli';
import { count } from './format';
import { number } from './usage';

const HOUR = 3_600;
const DONE: Record<string, string> = { stop: 'stopped', shrink: 'shrunk to its minimum', suspend: 'suspended' };

export interface Standing {
  word: string;
  tone: string;
}

/** How a job stands, as shape, word and colour. */
export function standing(job: IdleJob): Standing {
  if (job.actedAt) return { word: `✕ ${job.dryRun ? 'reported' : (DONE[job.action] ?? 'acted on')}`, tone: 'text-fail' };
  if (job.state === 'warned') return { word: job.dryRun ? '▲ reported' : '▲ warned', tone: 'text-wait' };
  if (job.state === 'extended') return { word: '◷ more time', tone: 'text-wait' };
  if (job.state === 'idle') return { word: '◌ idle', tone: 'text-muted' };
  return { word: '● in use', tone: 'text-muted' };
}

export interface Coming {
  /** What happens, without its time; '' where nothing is to be said. */
  words: string;
  at: string | null;
  over: boolean;
}

/** What is done about a job and when, or what was done. */
export function coming(job: IdleJob): Coming {
  const done = DONE[job.action];
  if (job.actedAt) return { words: done ? `${job.dryRun ? 'would have been' : 'was'} ${done}` : 'was acted on', at: job.actedAt, over: true };
  if (job.actsAt && done) return { words: `${job.dryRun ? 'would be' : 'is'} ${done}`, at: job.actsAt, over: false };
  return { words: job.state === 'busy' || job.action === '' ? '' : 'nothing more is done', at: null, over: false };
}

export const wastedHours = (job: IdleJob) => number(job.wastedDeviceSeconds / HOUR, 1);

/** Which devices are idle, and what that has wasted, as a sentence without its time. */
export function idleWords(job: IdleJob): string {
  const devices = job.held > 1 ? `${job.idle} of its ${count(job.held, 'device')} ${job.idle === 1 ? 'is' : 'are'} idle` : 'Its device is idle';
  return `${devices}; ${wastedHours(job)} device-hours are wasted.`;
}

/** The owner of a job that was warned, and administrators, may ask for more time once. */
export function mayExtend(job: IdleJob, me: Pick<Me, 'user' | 'role'> | undefined): boolean {
  return job.state === 'warned' && !job.extendedAt && !job.dryRun && (me?.role === 'admin' || me?.user === job.user);
}

export interface Parts {
  /** Those whose devices are idle, or that an action has ended. */
  now: IdleJob[];
  /** Those whose devices are in use again, or that are over. */
  before: IdleJob[];
  dry: IdleJob[];
}

export function parts(jobs: readonly IdleJob[]): Parts {
  const found: Parts = { now: [], before: [], dry: [] };
  for (const each of jobs) {
    if (each.dryRun) found.dry.push(each);
    else if (each.state === 'busy') found.before.push(each);
    else found.now.push(each);
  }
  return found;
}

export function matches(job: IdleJob, q: string): boolean {
  const word = q.toLowerCase();
  return !word || [job.name, job.user, job.queue, job.state, job.reason].some((text) => text.toLowerCase().includes(word));
}

/** The command that asks for more time, for a reader who may do it. */
export function extendLine(job: Pick<IdleJob, 'name' | 'user'>, me: string | undefined, reason: string): string {
  const ref = job.user === me ? job.name : `${job.user}~${job.name}`;
  return `corral idle extend ${quote(ref)} --reason ${reason ? quote(reason) : 'TEXT'}`;
}
