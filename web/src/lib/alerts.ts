/** Alerts and silences in words: what an alert is about, how grave it is, and the matchers of a silence. */

import type { Alert } from '../api/types';
import { alerts as texts } from '../texts/english/alerts';
import { textOf } from '../texts/fill';
import { quote } from './cli';
import { short } from './series';

/** OpenPAI's severities and Prometheus' usual ones, the gravest first. */
const SEVERITIES = ['fatal', 'critical', 'error', 'warn', 'warning', 'info'];
const GRAVE = new Set(['fatal', 'critical', 'error']);
const WARNING = new Set(['warn', 'warning']);

/** Labels that the row tells in another place. */
const TOLD = new Set(['alertname', 'severity']);

export type Tone = 'fail' | 'wait' | 'muted';

export function toneOf(severity: string): Tone {
  if (GRAVE.has(severity)) return 'fail';
  return WARNING.has(severity) ? 'wait' : 'muted';
}

/** A shape for the severity, so that colour alone does not tell it. */
export function shapeOf(severity: string): string {
  return { fail: '✕', wait: '▲', muted: '●' }[toneOf(severity)];
}

/** The gravest first, then those that began last. */
export function ordered(alerts: readonly Alert[]): Alert[] {
  const rank = ({ severity }: Alert) => {
    const at = SEVERITIES.indexOf(severity);
    return at < 0 ? SEVERITIES.length : at;
  };
  return [...alerts].sort((one, other) => rank(one) - rank(other) || other.since.localeCompare(one.since) || one.fingerprint.localeCompare(other.fingerprint));
}

/** The labels in words: `node rack3-n1`, `device 3`. */
export function labelWords(labels: Record<string, string>): string[] {
  return Object.entries(labels)
    .filter(([name, value]) => value && !TOLD.has(name) && !(name === 'job' && value === 'corral'))
    .map(([name, value]) => `${Object.hasOwn(texts.labels, name) ? textOf(texts.labels, name) : name.replaceAll('_', ' ')} ${value}`);
}

export function valueWords(value: number | null): string {
  return value === null ? '–' : Number.isFinite(value) ? short(value) : String(value);
}

/** What an alert says: its summary, or else its description. */
export function said({ annotations }: Pick<Alert, 'annotations'>): string {
  return annotations.summary || annotations.description || annotations.message || '';
}

export interface Parts {
  firing: Alert[];
  silenced: Alert[];
  pending: Alert[];
  over: Alert[];
}

/** The alerts by what a reader has to do about them. */
export function parts(alerts: readonly Alert[]): Parts {
  const found: Parts = { firing: [], silenced: [], pending: [], over: [] };
  for (const each of ordered(alerts)) {
    if (each.state === 'resolved') found.over.push(each);
    else if (each.silencedBy.length > 0) found.silenced.push(each);
    else found[each.state].push(each);
  }
  return found;
}

/** Whether an alert has a word in its name, its labels or what it says. */
export function matches(alert: Alert, q: string): boolean {
  const word = q.toLowerCase();
  const texts = [alert.name, alert.severity, said(alert), ...Object.entries(alert.labels).map((label) => label.join('=')), ...labelWords(alert.labels)];
  return !word || texts.some((text) => text.toLowerCase().includes(word));
}

/** The matchers that meet this alert and, as far as its labels tell, no other. */
export function matchersOf(alert: Alert): string[] {
  return Object.entries(alert.labels)
    .filter(([, value]) => value && !value.includes('\n'))
    .map(([name, value]) => `${name}="${value}"`);
}

/** One matcher a line; empty lines count for nothing. */
export function readMatchers(text: string): string[] {
  return text.split('\n').map((line) => line.trim()).filter(Boolean);
}

/** How long a silence may last, in seconds, by its words on the command line. */
export const LENGTHS = [
  ['30m', 1_800],
  ['2h', 7_200],
  ['8h', 28_800],
  ['1d', 86_400],
  ['3d', 259_200],
  ['7d', 604_800],
  ['31d', 2_678_400],
] as const;

export function silenceLine(matchers: readonly string[], length: string, reason: string): string {
  const shown = matchers.length > 0 ? matchers.map(quote) : ['MATCHER'];
  return ['corral alerts silence', ...shown, '--for', length, '--reason', reason ? quote(reason) : 'TEXT'].join(' ');
}
