/** Jobs that leave their devices idle, in words: how they stand, what comes next, and who may ask for more time. */

import type { IdleJob, Me } from '../api/types';
import { counts } from '../texts/english/counts';
import { idle as texts } from '../texts/english/idle';
import { counted, fill, textOf } from '../texts/fill';
import { quote } from './cli';
import { number } from './usage';

const HOUR = 3_600;
/** What an action has done to a job, `stopped`; undefined where it does nothing to it. */
const doneBy = (action: string): string | undefined => (Object.hasOwn(texts.done, action) ? textOf(texts.done, action) : undefined);

export interface Standing {
  word: string;
  tone: string;
}

/** How a job stands, as shape, word and colour. */
export function standing(job: IdleJob): Standing {
  const { stands } = texts;
  if (job.actedAt) {
    const done = doneBy(job.action);
    return { word: job.dryRun ? stands.actedDry : done ? fill(stands.done, { done }) : stands.acted, tone: 'text-fail' };
  }
  if (job.state === 'warned') return { word: job.dryRun ? stands.warnedDry : stands.warned, tone: 'text-wait' };
  if (job.state === 'extended') return { word: stands.extended, tone: 'text-wait' };
  if (job.state === 'idle') return { word: stands.idle, tone: 'text-muted' };
  return { word: stands.busy, tone: 'text-muted' };
}

export interface Coming {
  /** What happens, without its time; '' where nothing is to be said. */
  words: string;
  at: string | null;
  over: boolean;
}

/** What is done about a job and when, or what was done. */
export function coming(job: IdleJob): Coming {
  const done = doneBy(job.action);
  if (job.actedAt) return { words: done ? fill(job.dryRun ? texts.wouldHaveBeen : texts.was, { done }) : texts.wasActedOn, at: job.actedAt, over: true };
  if (job.actsAt && done) return { words: fill(job.dryRun ? texts.wouldBe : texts.is, { done }), at: job.actsAt, over: false };
  return { words: job.state === 'busy' || job.action === '' ? '' : texts.nothingMore, at: null, over: false };
}

export const wastedHours = (job: IdleJob) => number(job.wastedDeviceSeconds / HOUR, 1);

/** Which devices are idle, and what that has wasted, as a sentence without its time. */
export function idleWords(job: IdleJob): string {
  const devices = job.held > 1 ? counted(texts.some, job.idle, { devices: counted(counts.devices, job.held) }) : texts.only;
  return fill(texts.wasted, { devices, hours: wastedHours(job) });
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
