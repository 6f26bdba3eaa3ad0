/** A candidate policy beside the one in force, as the page holds it, as the server takes it, as a command, and its report in words. */

import type { Figures, HourRow, Moved, RunningShadow, ShadowReport } from '../api/types';
import { quote } from './cli';
import { count } from './format';
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
export const PRESETS = ['fair', 'fifo', 'priority', 'srtf', 'srsf', 'las', 'gittins', 'deadline', 'finish-time-fairness', 'shockwave', 'gandiva-fair', 'smallest-first', 'largest-first', 'random', 'hived', 'gavel', 'gavel-makespan', 'gavel-finish-time', 'gavel-cost', 'allox'] as const;
export const HOURS = [
  ['4', '4 hours'],
  ['24', '1 day'],
  ['72', '3 days'],
  ['168', '1 week'],
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

const hourAndDay = (at: string) => `${at.slice(5, 10)} ${at.slice(11, 16)} UTC`;

/** How a running shadow stands, in a few sentences. */
export function runningInWords(shadow: RunningShadow): string[] {
  const { state, candidate, user, begin, end, anew, reportedAt, nextAt, progress, trouble, error } = shadow;
  const how = anew ? ', anew each hour' : '';
  const found = [`${candidate} decides beside the policy in force${how}, from ${hourAndDay(begin)} on. ${user} began it.`];
  if (state === 'running') {
    const now = nextAt === null ? (progress?.says ?? 'A report is being made.') : `The next report comes at ${hourAndDay(nextAt)}.`;
    found.push(`It goes on until ${hourAndDay(end)}. ${now}`);
  } else {
    found.push(state === 'done' ? `It ended at ${hourAndDay(end)}.` : state === 'stopped' ? 'It was stopped.' : `It ended: ${error?.message ?? 'it failed.'}`);
  }
  if (trouble) found.push(trouble);
  found.push(reportedAt === null ? 'There is no report yet.' : `The report goes up to ${hourAndDay(reportedAt)}.`);
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
  const found = [`For ${duration(Math.round(seconds))}, ${report.candidate} decided beside ${report.inForce}.`];
  if (made === 0) return [...found, 'Neither of both had anything to decide.'];
  found.push(
    otherwise === 0
      ? `It decided the same: ${count(decisions.alike, 'decision')} within ${duration(report.within)}.`
      : `${count(decisions.alike, 'decision')} ${decisions.alike === 1 ? 'is' : 'are'} alike within ${duration(report.within)}; ${decisions.onlyInForce} ${decisions.onlyInForce === 1 ? 'was' : 'were'} made only in force and ${decisions.onlyCandidate} only by the candidate.`,
  );
  const jobs = report.earlier + report.later + report.same;
  if (jobs > 0) found.push(`Of ${count(jobs, 'job')} that started, it starts ${report.earlier} earlier, ${report.later} later, and ${report.same} at the same time.`);
  return found;
}

/** Some jobs with how much earlier or later they start. */
export function movedJobs(jobs: readonly Moved[]): string {
  return jobs.map(({ name, seconds, complete }) => `${name} (${complete ? '' : 'at least '}${duration(Math.round(Math.abs(seconds)))} ${seconds > 0 ? 'earlier' : 'later'})`).join(', ');
}

const wait = (seconds: number | null) => (seconds === null ? '–' : duration(Math.round(seconds)));
const number = (value: number) => (value >= 100 ? String(Math.round(value)) : String(Math.round(value * 10) / 10));

export interface Measure {
  word: string;
  value: (figures: Figures) => number | null;
  say: (figures: Figures) => string;
}

/** What the picture draws of each queue. */
export const DRAWN: readonly Measure[] = [
  { word: 'Wait, p95', value: (each) => each.waitP95, say: (each) => wait(each.waitP95) },
  { word: 'Devices in use', value: (each) => each.devices, say: (each) => number(each.devices) },
  { word: 'Preempted', value: (each) => each.preempted, say: (each) => number(each.preempted) },
];

/** What tables tell of a queue or an hour, and on which screens a column is left out. */
export const COLUMNS: readonly [word: string, say: (figures: Figures) => string, narrow: string][] = [
  ['Starts', (each) => number(each.started), ''],
  ['Wait, median', (each) => wait(each.waitP50), 'max-sm:hidden'],
  ['Wait, p95', (each) => wait(each.waitP95), ''],
  ['Devices', (each) => number(each.devices), 'max-md:hidden'],
  ['Preempted', (each) => number(each.preempted), 'max-lg:hidden'],
  ['Still waiting', (each) => number(each.waiting), 'max-md:hidden'],
];

/** The clock hour of a row in UTC, as the journal counts them: `11-28 09:00`. */
export function hourOf(row: HourRow): string {
  return row.at.slice(5, 16).replace('T', ' ');
}

/** How far a bar reaches, at least a visible part if there is anything. */
export function part(value: number | null, most: number): number {
  return value === null || value <= 0 || most <= 0 ? 0 : Math.max(0.005, value / most);
}
