/** Durations and ages as an instrument shows them: two units at most, the same width from second to second. */

import { time } from '../texts/english/shared';
import { fill } from '../texts/fill';
import { language } from '../texts/language';

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
  ['s', 1],
] as const;

/** `93784` s is `1d 2h`; below a minute `42s`; below ten seconds one decimal where the value has it; below a second `14ms`. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return '0s';
  if (seconds > 0 && seconds < 1) return `${Math.ceil(seconds * 1000)}ms`;
  if (seconds < 10 && !Number.isInteger(seconds)) return `${seconds.toFixed(1)}s`;
  const whole = Math.floor(seconds);
  for (const [at, [unit, size]] of UNITS.entries()) {
    if (whole < size) continue;
    const lower = UNITS[at + 1];
    const rest = lower ? Math.floor((whole % size) / lower[1]) : 0;
    return `${Math.floor(whole / size)}${unit}${lower && rest > 0 ? ` ${rest}${lower[0]}` : ''}`;
  }
  return '0s';
}

/** Seconds from one RFC 3339 time to another. */
export function between(from: string, to: string | number): number {
  return ((typeof to === 'number' ? to : Date.parse(to)) - Date.parse(from)) / 1000;
}

/** How long ago: `just now`, `3m ago`; only the largest unit, since ages need no more. */
export function ago(at: string, now: number): string {
  const seconds = between(at, now);
  if (seconds < 5) return time.now;
  const [unit, size] = UNITS.find(([, each]) => seconds >= each) ?? UNITS[3];
  return fill(time.ago, { time: `${Math.floor(seconds / size)}${unit}` });
}

/** The absolute time, for hovers: `2026-11-21 12:08:15.858 UTC` and the local one. */
export function absolute(at: string): string {
  const utc = at.replace('T', ' ').replace('Z', ' UTC');
  return fill(time.here, { utc, local: new Date(at).toLocaleString() });
}

/** The day in the reader's zone, `29 Nov`; English is written as in Europe, like the times of day. */
export function dayAndMonth(at: string): string {
  const { code } = language();
  return new Date(at).toLocaleDateString(code === 'en' ? 'en-GB' : code, { day: 'numeric', month: 'short' });
}

/** The time of day in the reader's zone, `12:08:15`. */
export function clock(at: string): string {
  return new Date(at).toLocaleTimeString('en-GB', { hour12: false });
}
