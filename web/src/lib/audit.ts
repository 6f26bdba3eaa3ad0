/** The audit log: what the API is asked for, the same on the command line, and a file of lines. */

import type { AuditRecord } from '../api/types';
import { quote } from './cli';
import { csv } from './usage';

export const DAYS = ['1', '7', '30', '90'] as const;
/** Which lines an address wants; an empty field wants all. */
export interface Wanted {
  by?: string;
  action?: string;
  resource?: string;
  /** `1` for only what was refused. */
  refused?: string;
  days?: string;
}

const DAY_MS = 86_400_000;
const HEAD = ['At', 'By', 'Action', 'Resource', 'Rule', 'Allowed', 'Detail'];

const daysOf = ({ days }: Wanted) => DAYS.find((each) => each === days);

/** The query of the API, without times. */
export const query = ({ by, action, resource, refused }: Wanted) => ({ by, action, resource, refused: refused ? true : undefined });

/** The time from which lines are wanted; undefined for all. */
export function begin(wanted: Wanted, now: number): string | undefined {
  const days = daysOf(wanted);
  return days && new Date(now - Number(days) * DAY_MS).toISOString();
}

export function auditLine(wanted: Wanted): string {
  const words = ['corral', 'audit'];
  for (const name of ['by', 'action', 'resource'] as const) if (wanted[name]) words.push(`--${name}`, quote(wanted[name]));
  if (wanted.refused) words.push('--refused');
  const days = daysOf(wanted);
  if (days) words.push('--since', `${days}d`);
  return words.join(' ');
}

/** What a line tells beside its columns, such as `reason: deadline`; what is empty is left out. */
export const detailWords = ({ detail }: Pick<AuditRecord, 'detail'>) =>
  Object.entries(detail).filter(([, value]) => !isEmpty(value)).map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`);

/** The job that a line is about. */
export const jobOf = ({ resource }: Pick<AuditRecord, 'resource'>) => /^job:([\w.~-]+)$/.exec(resource)?.[1];

const isEmpty = (value: unknown) => value === null || value === '' || (Array.isArray(value) && value.length === 0);

export const auditCsv = (lines: readonly AuditRecord[]) =>
  csv([HEAD, ...lines.map((line) => [line.at, line.actor, line.action, line.resource, line.rule, line.allowed ? 'yes' : 'no', detailWords(line).join('; ')])]);
