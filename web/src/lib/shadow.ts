/** A candidate policy beside the one in force, as the page holds it, as the server takes it, as a command, and its report in words. */

import type { Figures, HourRow, Moved, RunningShadow, ShadowReport } from '../api/types';
import { shadow as texts } from '../texts/english/shadow';
import { counted, fill, number as written } from '../texts/fill';
import { quote } from './cli';
import { duration } from './time';

export interface Candidate {
  /** `NAME` or `NAME+PART`. */
  policy: string;
  documents: string;
  /** How many hours back it begins. */
  hours: string;
  /** Whether it begins each hour with what is in force then. */
  anew: boolean;
}

/** The built-in policies; those of installed packages can be typed. */
export const PRESETS = ['fair', 'fifo', 'priority', 'srtf', 'srsf', 'las', 'gittins', 'deadline', 'finish-time-fairness', 'shockwave', 'shockwave-program', 'gandiva-fair', 'smallest-first', 'largest-first', 'random', 'hived', 'gavel', 'gavel-makespan', 'gavel-finish-time', 'gavel-cost', 'allox'] as const;
/** The hours to choose from, each with the unit that it is told in and how many of it. */
export const HOURS = [
  ['4', 'hours', 4],
  ['24', 'days', 1],
  ['72', 'days', 3],
  ['168', 'weeks', 1],
] as const;
export const USUAL_HOURS = '24';

/** When a candidate of so many hours begins, to the minute; empty: a day ago, as the server has it. */
function since(hours: string, now: number): string {
  return hours === USUAL_HOURS ? '' : hoursAgo(hours, now);
}

function hoursAgo(hours: string, now: number): string {
  const minute = Math.floor(now / 60_000) - Number(hours) * 60;
  return `${new Date(minute * 60_000).toISOString().slice(0, 19)}Z`;
}

/** The body of `POST /policy-shadow`. */
export function shadowRequest({ policy, documents, hours, anew }: Candidate, now: number): Record<string, unknown> {
  return { policy: policy.trim(), documents: documents.trim() ? documents : '', since: since(hours, now), anew };
}

/** The hours that a candidate goes on by itself. */
const GOES_ON = 168;

/** The body of `POST /running-shadow`: it begins so many hours back, and goes on for a week. */
export function runningRequest({ policy, documents, hours, anew }: Candidate, now: number): Record<string, unknown> {
  return { policy: policy.trim(), documents: documents.trim() ? documents : '', since: hoursAgo(hours, now), hours: Number(hours) + GOES_ON, anew };
}

const hourAndDay = (at: string) => fill(texts.timeUtc, { time: `${at.slice(5, 10)} ${at.slice(11, 16)}` });

/** How a running shadow stands, in a few sentences. */
export function runningInWords(shadow: RunningShadow): string[] {
  const { state, candidate, user, begin, end, anew, reportedAt, nextAt, progress, trouble, error } = shadow;
  const found = [fill(anew ? texts.decidesAnew : texts.decides, { candidate, begin: hourAndDay(begin), user })];
  if (state === 'running') {
    const now = nextAt === null ? (progress?.says ?? texts.reportIsMade) : fill(texts.nextReport, { time: hourAndDay(nextAt) });
    found.push(fill(texts.goesOnUntil, { end: hourAndDay(end), now }));
  } else {
    found.push(state === 'done' ? fill(texts.endedAt, { end: hourAndDay(end) }) : state === 'stopped' ? texts.wasStopped : fill(texts.endedBecause, { reason: error?.message ?? texts.itFailed }));
  }
  if (trouble) found.push(trouble);
  found.push(reportedAt === null ? texts.noReport : fill(texts.reportUpTo, { time: hourAndDay(reportedAt) }));
  return found;
}

/** The command that asks the same; documents are in a folder of their own. */
export function shadowLine({ policy, documents, hours, anew }: Candidate, now: number): string {
  const words = ['corral', 'policy', 'shadow'];
  if (policy.trim()) words.push(policy.trim());
  words.push('--server');
  if (documents.trim()) words.push('--documents', 'documents');
  const begin = since(hours, now);
  if (begin) words.push('--from', begin);
  if (anew) words.push('--anew');
  return words.map(quote).join(' ');
}

/** The report in a few sentences. */
export function inWords(report: ShadowReport): string[] {
  const { decisions, seconds } = report.total;
  const otherwise = decisions.onlyInForce + decisions.onlyCandidate;
  const made = decisions.alike + otherwise;
  const found = [fill(texts.decidedBeside, { time: duration(Math.round(seconds)), candidate: report.candidate, inForce: report.inForce })];
  if (made === 0) return [...found, texts.nothingToDecide];
  const within = duration(report.within);
  found.push(
    otherwise === 0
      ? counted(texts.decidedTheSame, decisions.alike, { within })
      : counted(texts.otherwise, decisions.onlyInForce, { alike: counted(texts.alike, decisions.alike, { within }), candidate: written(decisions.onlyCandidate) }),
  );
  const jobs = report.earlier + report.later + report.same;
  if (jobs > 0) found.push(counted(texts.jobsStart, jobs, { earlier: written(report.earlier), later: written(report.later), same: written(report.same) }));
  return found;
}

/** Some jobs with how much earlier or later they start. */
export function movedJobs(jobs: readonly Moved[]): string {
  const text = ({ seconds, complete }: Moved) => (seconds > 0 ? (complete ? texts.movedEarlier : texts.movedEarlierAtLeast) : complete ? texts.movedLater : texts.movedLaterAtLeast);
  return jobs.map((job) => fill(text(job), { job: job.name, time: duration(Math.round(Math.abs(job.seconds))) })).join(', ');
}

const wait = (seconds: number | null) => (seconds === null ? '–' : duration(Math.round(seconds)));
const number = (value: number) => written(value, { maximumFractionDigits: value >= 100 ? 0 : 1 });

export interface Measure {
  name: keyof typeof texts.figures;
  value: (figures: Figures) => number | null;
  say: (figures: Figures) => string;
}

/** What the picture draws of each queue. */
export const DRAWN: readonly Measure[] = [
  { name: 'waitP95', value: (each) => each.waitP95, say: (each) => wait(each.waitP95) },
  { name: 'devicesInUse', value: (each) => each.devices, say: (each) => number(each.devices) },
  { name: 'preempted', value: (each) => each.preempted, say: (each) => number(each.preempted) },
];

/** What tables tell of a queue or an hour, and on which screens a column is left out. */
export const COLUMNS: readonly [name: keyof typeof texts.figures, say: (figures: Figures) => string, narrow: string][] = [
  ['started', (each) => number(each.started), ''],
  ['waitMedian', (each) => wait(each.waitP50), 'max-sm:hidden'],
  ['waitP95', (each) => wait(each.waitP95), ''],
  ['devices', (each) => number(each.devices), 'max-md:hidden'],
  ['preempted', (each) => number(each.preempted), 'max-lg:hidden'],
  ['waiting', (each) => number(each.waiting), 'max-md:hidden'],
];

/** The clock hour of a row in UTC, as the journal counts them: `11-28 09:00`. */
export function hourOf(row: HourRow): string {
  return row.at.slice(5, 16).replace('T', ' ');
}

/** How far a bar reaches, at least a visible part if there is anything. */
export function part(value: number | null, most: number): number {
  return value === null || value <= 0 || most <= 0 ? 0 : Math.max(0.005, value / most);
}
