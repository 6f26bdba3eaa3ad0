/** Use and its costs: periods, sums by day for the chart, words, CSV, and the bars of budgets. */

import type { Budget, Charge, UsageReport, UsageRow } from '../api/types';
import { usage as texts } from '../texts/english/usage';
import { fill, number as written, textOf } from '../texts/fill';
import { quote } from './cli';

export const WAYS = ['user', 'queue', 'model', 'job', 'tag', 'node'] as const;
export type By = (typeof WAYS)[number];
/** The sums that charges are kept by, and that a chart by day can show. */
const CHARTED = ['user', 'queue', 'model'] as const;
export type Charted = (typeof CHARTED)[number];
export const PERIODS = ['7', '30', '90'] as const;

const DAY_MS = 86_400_000;
const HOUR = 3_600;

export const isCharted = (by: By): by is Charted => (CHARTED as readonly string[]).includes(by);

export const readBy = (text: string | undefined): By => WAYS.find((each) => each === text) ?? 'user';

/** The day in UTC, such as `2026-11-27`. */
export const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);

const isDay = (text: string) => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text));

export interface Period {
  /** Days in UTC; the last one is included. */
  first: string;
  last: string;
}

/** The period of an address: two days, or so many days that end today, by default `usual`. */
export function period(search: { days?: string; from?: string; to?: string }, now: number, usual: (typeof PERIODS)[number] = '30'): Period {
  const { from = '', to = '' } = search;
  if (isDay(from) && isDay(to) && from <= to) return { first: from, last: to };
  const days = PERIODS.find((each) => each === search.days) ?? usual;
  return { first: dayOf(now - (Number(days) - 1) * DAY_MS), last: dayOf(now) };
}

/** What the API is asked for: from the begin of the first day to the end of the last. */
export const asked = ({ first, last }: Period) => ({ from: first, to: dayOf(Date.parse(last) + DAY_MS) });

/** The days of a period. */
export function daysOf({ first, last }: Period): string[] {
  const found: string[] = [];
  for (let at = Date.parse(first); at <= Date.parse(last); at += DAY_MS) found.push(dayOf(at));
  return found;
}

export type Shown = 'hours' | 'lost' | 'cost';

export interface Stack {
  key: string;
  /** A value for each day. */
  values: number[];
  total: number;
}

/** Charges by day, a stack for each of the largest keys and one for all others, the largest first. */
export function stacks(charges: readonly Charge[], by: Charted, shown: Shown, days: readonly string[], most = 6): Stack[] {
  const at = new Map(days.map((day, place) => [day, place]));
  const found = new Map<string, Stack>();
  for (const charge of charges) {
    const place = at.get(charge.begin.slice(0, 10));
    const value = amountOf(charge, shown);
    if (place === undefined || value === 0) continue;
    const stack = found.get(charge[by]) ?? { key: charge[by], values: days.map(() => 0), total: 0 };
    stack.values[place] = (stack.values[place] ?? 0) + value;
    stack.total += value;
    found.set(charge[by], stack);
  }
  const all = [...found.values()].sort((one, other) => other.total - one.total || one.key.localeCompare(other.key));
  if (all.length <= most) return all;
  const rest = all.slice(most - 1);
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
  const others = { key: OTHERS, values: days.map((_, place) => sum(rest.map(({ values }) => values[place] ?? 0))), total: sum(rest.map(({ total }) => total)) };
  return [...all.slice(0, most - 1), others];
}

/** The key of the stack of all that have none of their own. */
export const OTHERS = '\u0000others';

function amountOf(charge: Charge, shown: Shown): number {
  if (shown === 'cost') return charge.cost;
  if (charge.meter !== 'device-hours') return 0;
  return shown === 'lost' ? charge.lost : charge.quantity;
}

const ROUND = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];

/** A round number at or above the highest bar. */
export function ceiling(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ROUND.map((each) => each * power).find((each) => each >= value * (1 - 1e-9)) ?? 10 * power;
}

export function number(value: number, digits = 2): string {
  return written(value, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** An amount for a chart: small ones keep two digits that count. */
export function amount(value: number): string {
  if (value === 0 || value >= 1) return number(value);
  return written(value, { maximumSignificantDigits: 2 });
}

export const hours = (seconds: number) => number(seconds / HOUR);

/** The name of a key; jobs have one besides their id. */
export function nameOf(by: By, { key, name }: Pick<UsageRow, 'key' | 'name'>): string {
  if (key === OTHERS) return texts.others;
  if (by === 'job' && key) return name || key;
  return key || (by === 'tag' || by === 'model' ? texts.nameless[by] : texts.removed);
}

/** The part of device-hours that came to nothing or was idle, in percent; '' where nothing was held. */
export function wastedPart({ deviceSeconds, lostDeviceSeconds, idleDeviceSeconds }: UsageRow): string {
  return deviceSeconds ? `${Math.round((100 * (lostDeviceSeconds + idleDeviceSeconds)) / deviceSeconds)} %` : '';
}

/** The mean use of devices in percent, of the time in which it was measured; '' where it was not. */
export function usedPart({ measuredDeviceSeconds, usedDeviceSeconds }: UsageRow): string {
  return measuredDeviceSeconds ? `${Math.round((100 * usedDeviceSeconds) / measuredDeviceSeconds)} %` : '';
}

/** Device-hours of idle devices; '' where no use was measured. */
export const idleHours = (row: UsageRow) => (row.measuredDeviceSeconds ? hours(row.idleDeviceSeconds) : '');

/** What was measured, in hours; '' where nothing was. */
export const usedHours = (row: UsageRow, seconds: number) => (row.measuredTaskSeconds ? hours(seconds) : '');

/** Energy in kilowatt-hours; '' where no device told its power. */
export const kilowattHours = ({ energyJoules }: UsageRow) => (energyJoules ? number(energyJoules / 3_600_000, 3) : '');

/** Of how much of the tasks' time the measured amounts are; '' where of all. */
export function measuredWords({ measuredTaskSeconds, taskSeconds, measuredDeviceSeconds, deviceSeconds }: UsageRow): string {
  const tasks = percentOf(measuredTaskSeconds, taskSeconds);
  const devices = percentOf(measuredDeviceSeconds, deviceSeconds);
  const said = [];
  if (tasks < ALL_PERCENT) said.push(fill(texts.tasksWereMeasured, { tasks: Math.round(tasks) }));
  if (measuredDeviceSeconds && devices < ALL_PERCENT) said.push(fill(texts.useDevicesWas, { devices: Math.round(devices) }));
  return said.join(' ');
}

const ALL_PERCENT = 99.5;
const percentOf = (part: number, whole: number) => (whole ? (100 * part) / whole : 100);

/** What a chart shows, in words. */
export function chartWords(stacked: readonly Stack[], by: Charted, what: string, days: readonly string[]): string {
  const sums = days.map((_, place) => stacked.reduce((total, { values }) => total + (values[place] ?? 0), 0));
  const most = Math.max(0, ...sums);
  const parts = stacked.map((stack) => fill(texts.part, { name: nameOf(by, { key: stack.key, name: '' }), amount: amount(stack.total) }));
  return fill(texts.chart, { what, first: days[0] ?? '', last: days.at(-1) ?? '', day: days[sums.indexOf(most)] ?? '', most: amount(most), parts: parts.join(', ') });
}

/** Text that a spreadsheet does not take for a formula, quoted where CSV asks for it. */
export function csvCell(value: string | number | null): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csv = (rows: readonly (readonly (string | number | null)[])[]) => rows.map((row) => `${row.map(csvCell).join(',')}\n`).join('');

/** A report as the file that `corral usage -o csv` writes. */
export function reportCsv(report: UsageReport): string {
  const head = [report.by, 'name', 'from', 'to', 'device_seconds', 'lost_device_seconds', 'task_seconds', 'cpu_seconds', 'memory_gib_seconds', 'measured_task_seconds', 'used_cpu_seconds', 'used_memory_gib_seconds', 'energy_joules', 'measured_device_seconds', 'used_device_seconds', 'idle_device_seconds', 'cost', 'currency'];
  const rows = report.items.map((row) => [
    row.key, row.name, report.begin, report.end, row.deviceSeconds, row.lostDeviceSeconds, row.taskSeconds, row.cpuSeconds, row.memoryGibSeconds,
    row.measuredTaskSeconds, row.usedCpuSeconds, row.usedMemoryGibSeconds, row.energyJoules, row.measuredDeviceSeconds, row.usedDeviceSeconds, row.idleDeviceSeconds, row.cost, report.currency,
  ]);
  return csv([head, ...rows]);
}

/** The command that shows the same report. */
export function usageLine(by: By, { first, last }: Period, user: string, queue: string): string {
  const { to } = asked({ first, last });
  const words = ['corral', 'usage', '--by', by, '--from', first, '--to', to, ...(user ? ['--user', user] : []), ...(queue ? ['--queue', queue] : [])];
  return words.map(quote).join(' ');
}

/** The parts of a budget's bar, from 0 to 1. */
export function budgetBar(budget: Budget): { used: number; promised: number; warn: number } {
  const scale = Math.max(budget.allowed, budget.used + budget.promised);
  const part = (value: number) => (scale > 0 ? value / scale : 0);
  return { used: part(budget.used), promised: part(budget.promised), warn: part(budget.allowed * budget.warnAt) };
}

export const budgetWords = (budget: Budget) =>
  fill(texts.budgetIs, {
    kind: textOf(texts.kinds, budget.kind),
    name: budget.name,
    used: number(budget.used, 1),
    allowed: number(budget.allowed, 1),
    promised: number(budget.promised, 1),
    left: number(budget.left, 1),
  });
