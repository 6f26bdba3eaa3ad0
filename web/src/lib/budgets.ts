/** Changing budgets: what a form asks for, what it would do to the present window, and the commands that do the same. */

import { part } from '../api/client';
import type { Budget } from '../api/types';
import { usage as texts } from '../texts/english/usage';
import { fill, textOf } from '../texts/fill';
import { quote } from './cli';
import { number } from './usage';

export const KINDS = ['queue', 'user'] as const;
export const WINDOWS = ['day', 'week', 'month'] as const;
/** What becomes of jobs that run while a budget is used up. */
export const WHEN_USED_UP = ['warn', 'hold'] as const;
export type WhenUsedUp = (typeof WHEN_USED_UP)[number];
/** The API allows no more device-hours. */
const MOST = 1e9;
const USUAL_WARN = 80;

export interface Wanted {
  kind: string;
  name: string;
  window: string;
  /** Device-hours, as typed. */
  hours: string;
  /** Percent, as typed. */
  warn: string;
  then: WhenUsedUp;
}

/** What a form begins with: an existing budget, or a new one of a queue. */
export function begun(of: Budget | null): Wanted {
  if (of === null) return { kind: 'queue', name: '', window: 'week', hours: '', warn: String(USUAL_WARN), then: 'warn' };
  return { kind: of.kind, name: of.name, window: of.window, hours: String(of.deviceHours), warn: String(Math.round(1e4 * of.warnAt) / 100), then: of.whenUsedUp };
}

/** A number of device-hours above 0; null for what is none. */
export function readHours(text: string): number | null {
  const value = Number(text);
  return text.trim() !== '' && value > 0 && value <= MOST ? value : null;
}

/** A part of a budget from percent; null for what is none. */
export function readWarn(text: string): number | null {
  const value = Number(text);
  return text.trim() !== '' && value > 0 && value <= 100 ? value / 100 : null;
}

export const isReady = ({ name, hours, warn }: Wanted) => name.trim() !== '' && readHours(hours) !== null && readWarn(warn) !== null;

type Key = Pick<Budget, 'kind' | 'name' | 'window'>;
export const budgetPath = ({ kind, name, window }: Key) => `/budgets/${kind}/${part(name.trim())}/${window}`;
export const sameBudget = (one: Key, other: Key) => one.kind === other.kind && one.name === other.name.trim() && one.window === other.window;

/** What is left of a window in which so many device-hours are allowed, and whether submissions are warned or refused. */
function after(budget: Budget, allowed: number, warnAt: number, then: WhenUsedUp): string {
  const spent = budget.used + budget.promised;
  const left = { left: number(Math.max(0, allowed - spent), 1), allowed: number(allowed, 1), window: textOf(texts.windows, budget.window) };
  if (budget.used >= allowed && then === 'hold') return fill(texts.usedUpSo, left);
  if (spent >= allowed) return fill(texts.usedUpSoSubmissions, left);
  return spent >= warnAt * allowed ? fill(texts.submissionsAreWarned, left) : fill(texts.leftOf, left);
}

/** What setting a budget does to its present window; '' while the form is not complete. */
export function setEffect(wanted: Wanted, of: Budget | undefined): string {
  const [hours, warnAt] = [readHours(wanted.hours), readWarn(wanted.warn)];
  if (hours === null || warnAt === null) return '';
  if (!of) return fill(texts.whatWasUsed, { window: textOf(texts.windows, wanted.window) });
  const added = of.topUps.reduce((sum, each) => sum + each.deviceHours, 0);
  return fill(texts.then, { of: after(of, hours + added, warnAt, wanted.then) });
}

/** What adding to a budget does; '' while the form is not complete. */
export function topUpEffect(of: Budget, text: string): string {
  const hours = readHours(text);
  return hours === null ? '' : fill(texts.thenFromNext, { of: after(of, of.allowed + hours, of.warnAt, of.whenUsedUp), window: textOf(texts.windows, of.window), deviceHours: number(of.deviceHours, 1) });
}

const line = (...words: string[]) => ['corral', 'budget', ...words.map(quote)].join(' ');

export function setLine({ kind, name, window, hours, warn, then }: Wanted): string {
  const warnAt = readWarn(warn);
  const more = warnAt === null || warnAt * 100 === USUAL_WARN ? [] : ['--warn-at', String(warnAt)];
  if (then !== 'warn') more.push('--when-used-up', then);
  return line('set', kind, name.trim() || 'NAME', window, hours.trim() || 'DEVICE-HOURS', ...more);
}

export const topUpLine = ({ kind, name, window }: Key, hours: string, reason: string) => line('top-up', kind, name, window, hours.trim() || 'DEVICE-HOURS', '--reason', reason || 'TEXT');

export const removeLine = ({ kind, name, window }: Key) => line('remove', kind, name, window);
