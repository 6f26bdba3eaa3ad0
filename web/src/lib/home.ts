/** What Home tells its reader: which of his jobs need him, what changed since his last visit, and which queues are his. */

import { type Alert, ENDED, type GroupView, type IdleJob, type JobSummary, type Queue } from '../api/types';
import { parts as alertParts } from './alerts';
import { parts as idleParts } from './idle';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** A job that waits for so long is named. */
export const LONG_WAIT_MS = HOUR;
/** A failure needs somebody for so long. */
export const FAILED_MS = 24 * HOUR;
/** After so long without this page the next look at it is another visit. */
const VISIT_MS = 30 * MINUTE;

/** The present visit of an account and the one before, as the browser keeps them. */
export interface Visit {
  /** When the page was last seen, in milliseconds of the server's clock. */
  seen: number;
  /** Up to when the reader knew what happened; null on the first visit. */
  known: number | null;
}

/**
 * The visit that a look at the page belongs to. A time to come is one of a clock that was wrong, and counts as none; one
 * within a minute is the server's, which pages do not know exactly.
 */
export function visit(kept: Visit | null, now: number): Visit {
  if (!kept || kept.seen >= now + MINUTE) return { seen: now, known: null };
  return { seen: Math.max(now, kept.seen), known: now - kept.seen > VISIT_MS ? kept.seen : kept.known };
}

/** What is stored as text, or null where it is no visit. */
export function readVisit(text: string | null): Visit | null {
  try {
    const { seen, known } = JSON.parse(text ?? 'null') as Record<string, unknown>;
    return typeof seen === 'number' && (known === null || typeof known === 'number') ? { seen, known } : null;
  } catch {
    return null;
  }
}

export interface Change {
  job: JobSummary;
  word: 'submitted' | 'started' | 'ended';
  at: string;
}

/** The latest thing that happened to each job after a time, the newest first. */
export function changes(jobs: readonly JobSummary[], since: number): Change[] {
  const found = jobs.map((job): Change => {
    if (job.endedAt && ENDED.has(job.state)) return { job, word: 'ended', at: job.endedAt };
    if (job.startedAt) return { job, word: 'started', at: job.startedAt };
    return { job, word: 'submitted', at: job.createdAt };
  });
  return found.filter(({ at }) => Date.parse(at) > since).sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

export interface Needs {
  failed: JobSummary[];
  waiting: JobSummary[];
  idle: IdleJob[];
  alerts: Alert[];
}

/** What a reader should look at; an empty part needs nobody. */
export function needs(given: { user: string; live: readonly JobSummary[]; ended: readonly JobSummary[]; idle: readonly IdleJob[]; alerts: readonly Alert[]; now: number }): Needs {
  const { user, now } = given;
  return {
    failed: given.ended.filter((job) => job.state === 'failed' && job.endedAt !== null && now - Date.parse(job.endedAt) < FAILED_MS),
    waiting: given.live.filter((job) => job.state === 'waiting' && now - Date.parse(job.createdAt) >= LONG_WAIT_MS),
    idle: idleParts(given.idle.filter((job) => job.user === user)).now,
    alerts: alertParts(given.alerts).firing,
  };
}

/** The queues that hold a reader's jobs, that he manages, or that a group of his grants, in the order of the tree. */
export function queuesOf(user: string, queues: readonly Queue[], jobs: readonly JobSummary[], groups: readonly GroupView[]): Queue[] {
  const names = new Set(jobs.map(({ queue }) => queue));
  for (const group of groups) if (group.members.includes(user)) for (const name of [...group.queues, ...group.manages]) names.add(name);
  return queues.filter(({ name, managers }) => names.has(name) || managers.includes(user));
}
