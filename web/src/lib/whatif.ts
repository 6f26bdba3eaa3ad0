/** A what-if question as the page holds it, as the server takes it, and as a command. */

import type { JobOutcome, Spread, WhatIfAnswer } from '../api/types';
import { whatif as texts } from '../texts/english/whatif';
import { fill } from '../texts/fill';
import { quote } from './cli';
import { type Goal, goalText, NO_GOAL, varyText } from './goal';
import { duration } from './time';

export interface Question {
  /** How many nodes to add, and which one they are like. */
  add: string;
  like: string;
  drain: string;
  queue: string;
  /** Devices that the queue deserves, and its limit of devices; empty: as they are. */
  deserved: string;
  limit: string;
  /** A job file that is submitted so many times. */
  submit: string;
  times: string;
  /** The name or id of a job that is stopped. */
  stop: string;
  policy: string;
  documents: string;
  hours: string;
  seeds: string;
  /** The first seed. */
  seed: string;
  /** Whether other jobs arrive as in the last week. */
  arrivals: boolean;
  goal: Goal;
}

export const NOTHING: Question = { add: '', like: '', drain: '', queue: '', deserved: '', limit: '', submit: '', times: '1', stop: '', policy: '', documents: '', hours: '24', seeds: '1', seed: '0', arrivals: false, goal: NO_GOAL };

/** The body of `POST /what-if`. */
export function asked(question: Question): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  if (question.deserved.trim()) fields.deserved = { devices: question.deserved.trim() };
  if (question.limit.trim()) fields.limit = { devices: question.limit.trim() };
  return {
    addNodes: question.like && Number(question.add) > 0 ? [{ count: Number(question.add), like: question.like }] : [],
    drain: question.drain ? [question.drain] : [],
    queues: question.queue && Object.keys(fields).length > 0 ? { [question.queue]: fields } : {},
    submit: question.submit.trim() ? [{ job: question.submit, times: Number(question.times) || 1 }] : [],
    stop: question.stop.trim() ? [question.stop.trim()] : [],
    policy: question.policy.trim(),
    documents: question.documents.trim() ? question.documents : '',
    horizonSeconds: Number(question.hours) * 3600,
    seeds: Number(question.seeds),
    seed: Number(question.seed) || 0,
    timeline: true,
    arrivals: question.arrivals ? 'last-week' : '',
    goal: goalText(question.goal),
    vary: varyText(question.goal),
  };
}

/** The command that asks the same; documents and a job are in files of their own. */
export function whatIfLine(question: Question): string {
  const words = ['corral', 'what-if'];
  if (question.like && Number(question.add) > 0) words.push('--add-nodes', question.add, '--like', question.like);
  if (question.drain) words.push('--drain', question.drain);
  const fields = [question.deserved.trim() && `deserved.devices:${question.deserved.trim()}`, question.limit.trim() && `limit.devices:${question.limit.trim()}`].filter(Boolean);
  if (question.queue && fields.length > 0) words.push('--queue', `${question.queue}=${fields.join(',')}`);
  if (question.submit.trim()) words.push('--submit', 'job.yaml');
  if (question.submit.trim() && Number(question.times) > 1) words.push('--times', question.times);
  if (question.stop.trim()) words.push('--stop', question.stop.trim());
  if (question.policy.trim()) words.push('--policy', question.policy.trim());
  if (question.documents.trim()) words.push('--documents', 'documents.yaml');
  if (question.hours !== '24') words.push('--horizon', `${question.hours}h`);
  if (question.seeds !== '1') words.push('--seeds', question.seeds);
  if (Number(question.seed) > 0) words.push('--seed', question.seed);
  if (question.arrivals) words.push('--arrivals', 'last-week');
  if (goalText(question.goal)) words.push('--goal', goalText(question.goal), '--vary', varyText(question.goal));
  return words.map(quote).join(' ');
}

/** `10m 5s`, with more than one course `10m 5s (8m to 12m)`; `later` is after the horizon, `never` on no node that there is. */
export function starts(spread: Spread, seeds: number, never = false): string {
  if (never) return texts.never;
  const say = (seconds: number | null | undefined) => (seconds === null || seconds === undefined ? texts.afterHorizon : duration(Math.round(seconds)));
  if (seeds === 1 || spread.p10 === spread.p90) return say(spread.p50);
  return fill(texts.spread, { middle: say(spread.p50), low: say(spread.p10), high: say(spread.p90) });
}

/** The jobs that an answer's table shows: those that gain and lose most, the submitted ones, then the first others. */
export function told(answer: WhatIfAnswer, most = 20): JobOutcome[] {
  const rank = new Map([...answer.gains, ...answer.losses].map((id, at) => [id, at]));
  const place = (job: JobOutcome) => rank.get(job.id) ?? (job.added ? rank.size : rank.size + 1);
  return [...answer.jobs].sort((a, b) => place(a) - place(b)).slice(0, most);
}

/** By how much a job's middle start moves, in seconds; negative is earlier. Never is the horizon. */
export function move(job: JobOutcome, horizon: number): number {
  if (job.added) return 0;
  return (job.after.p50 ?? horizon) - (job.before.p50 ?? horizon);
}

/** A line through values at equal distances, in a picture of this size: the points of an SVG polyline. */
export function polyline(values: readonly number[], top: number, width: number, height: number): string {
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  return values.map((value, at) => `${(at * step).toFixed(1)},${(height - (top > 0 ? value / top : 0) * height).toFixed(1)}`).join(' ');
}
