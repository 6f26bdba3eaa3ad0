/** What the page of estimates shows of a queue's figures. */

import type { QueueEstimates } from '../api/types';
import { estimates as texts } from '../texts/english/estimates';
import { counted, fill, number } from '../texts/fill';
import { quote } from './cli';
import { duration } from './time';

export const DAYS = ['7', '30'] as const;
/** The part of the intervals that should hold, and how far from it is good enough. */
export const AIM = 0.8;
export const NEAR = 0.1;

/** The coverage in words. */
export function held(found: QueueEstimates): string {
  if (found.coverage === null) return texts.nothingToJudge;
  const judged = found.held + found.early + found.late;
  return counted(texts.held, judged, { percent: number(Math.round(found.coverage * 100)) });
}

/** By how much jobs start later or earlier than they are told. */
export function bias(seconds: number | null): string {
  if (seconds === null) return '–';
  if (Math.abs(seconds) < 1) return texts.unbiased;
  return fill(seconds > 0 ? texts.later : texts.earlier, { time: duration(Math.abs(seconds)) });
}

/** A width or an error. */
export function span(seconds: number | null): string {
  return seconds === null ? '–' : duration(seconds);
}

/** How far a width reaches on a scale from nothing to the widest one, at least a visible part. */
export function reach(seconds: number | null, widest: number): number {
  return seconds === null || widest <= 0 ? 0 : Math.min(1, Math.max(0.005, seconds / widest));
}

export function estimatesLine(queue: string, days: string): string {
  const words = ['corral', 'estimates'];
  if (queue) words.push('--queue', quote(queue));
  if (days !== DAYS[0]) words.push('--days', days);
  return words.join(' ');
}
