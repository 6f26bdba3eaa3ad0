/** Series of a job as lines of a picture, and in words. */

import type { SeriesAnswer, SeriesView } from '../api/types';
import { job as texts } from '../texts/english/job';
import { fill, number } from '../texts/fill';

/** Steps without a value that a line is drawn across: programs report less often than a step is long. */
const BRIDGED = 20;
const OF_JOB = 'corral_job_';
/** The family of the curves in event files; their names are their tags. */
const SCALAR = 'corral_job_scalar';

export interface Picture {
  /** The path of the means, in a box of the given size. */
  line: string;
  /** The path of values that stand alone. */
  dots: string;
  /** The closed path between the least and the greatest values; '' where each step has one value. */
  band: string;
  low: number;
  high: number;
  last: number;
}

/** A series in a box of `width` by `height`; null where it has no value. */
export function picture(series: SeriesView, width: number, height: number): Picture | null {
  const known = series.mean.flatMap((value, at) => (value === null ? [] : [at]));
  const last = known.at(-1);
  if (last === undefined) return null;
  const lows = known.map((at) => series.low[at] ?? 0);
  const highs = known.map((at) => series.high[at] ?? 0);
  const low = Math.min(...lows);
  const high = Math.max(...highs);
  const x = (at: number) => round((width * (at + 0.5)) / series.mean.length);
  const y = (value: number) => round(high === low ? height / 2 : height * (1 - (value - low) / (high - low)));
  let line = '';
  let dots = '';
  let band = '';
  for (const run of runs(known)) {
    const points = run.map((at) => `${x(at)} ${y(series.mean[at] ?? 0)}`);
    if (points.length === 1) dots += `M${points[0] ?? ''}h0`;
    else line += `M${points.join('L')}`;
    if (run.every((at) => series.low[at] === series.high[at])) continue;
    const above = run.map((at) => `${x(at)} ${y(series.high[at] ?? 0)}`);
    const below = run.map((at) => `${x(at)} ${y(series.low[at] ?? 0)}`).reverse();
    band += `M${above.concat(below).join('L')}Z`;
  }
  return { line, dots, band, low, high, last: series.mean[last] ?? 0 };
}

/** Steps that one line joins. */
function runs(known: number[]): number[][] {
  const found: number[][] = [];
  for (const at of known) {
    const run = found.at(-1);
    const before = run?.at(-1);
    if (run && before !== undefined && at - before <= BRIDGED) run.push(at);
    else found.push([at]);
  }
  return found;
}

const round = (value: number) => Math.round(value * 10) / 10;

/** The labels that tell series of a job apart: those with several values. */
export function tellingLabels(items: SeriesView[]): Set<string> {
  const values = new Map<string, Set<string>>();
  for (const each of items) {
    for (const [name, value] of Object.entries(each.labels)) {
      values.set(name, (values.get(name) ?? new Set<string>()).add(value));
    }
  }
  return new Set([...values].filter(([, found]) => found.size > 1).map(([name]) => name));
}

/** The name of a series: the figure, and the labels that tell it from others of the job. */
export function nameOf(series: SeriesView, telling: Set<string>): string {
  const { tag, ...others } = series.labels;
  const curve = series.family === SCALAR ? tag : undefined;
  const labels = Object.entries(curve === undefined ? series.labels : others).flatMap(([name, value]) => (telling.has(name) && value ? [value] : []));
  const figure = curve ?? series.family.replace(OF_JOB, '').replaceAll('_', ' ');
  const said = curve === undefined ? labels : ['TensorBoard', ...labels];
  return said.length ? `${figure} (${said.join(', ')})` : figure;
}

export function short(value: number): string {
  if (value !== 0 && Math.abs(value) < 0.001) return value.toExponential(2);
  return number(Number(value.toPrecision(4)), { maximumFractionDigits: 6 });
}

/** What a picture shows, in words. */
export function inWords(name: string, shown: Picture): string {
  return fill(texts.series, { name, last: short(shown.last), low: short(shown.low), high: short(shown.high) });
}

export type Named = [string, SeriesView];

/** The series by name: what the program reports, and what was measured of its tasks. */
export function named(answer: SeriesAnswer): { reported: Named[]; measured: Named[] } {
  const telling = tellingLabels(answer.items);
  const all = answer.items.map((each): Named => [nameOf(each, telling), each]).sort(([one], [other]) => one.localeCompare(other));
  const isReported = ([, each]: Named) => each.family.startsWith(OF_JOB);
  return { reported: all.filter(isReported), measured: all.filter((each) => !isReported(each)) };
}
