/** Two jobs beside each other: their documents as lines that differ, and their curves over each other. */

import type { SeriesAnswer, SeriesView } from '../api/types';
import { named, type Named } from './series';

/** Lines around a difference. */
const AROUND = 3;
/** Cells of the table of common lines at most; longer documents are compared by whole parts. */
const MOST_CELLS = 4_000_000;

interface Step {
  sign: ' ' | '-' | '+';
  text: string;
}

/** The unified diff of two texts, as `diff -u` writes it; '' where they are the same. */
export function unified(before: string, after: string): string {
  const steps = compared(before.split('\n'), after.split('\n'));
  const changed = steps.flatMap((step, at) => (step.sign === ' ' ? [] : [at]));
  let text = '';
  for (const hunk of hunks(changed, steps.length)) {
    const [from, to] = hunk;
    const above = steps.slice(0, from);
    const inside = steps.slice(from, to);
    const count = (list: Step[], sign: string) => list.filter((step) => step.sign === ' ' || step.sign === sign).length;
    text += `@@ -${count(above, '-') + 1},${count(inside, '-')} +${count(above, '+') + 1},${count(inside, '+')} @@\n`;
    text += inside.map((step) => `${step.sign}${step.text}\n`).join('');
  }
  return text;
}

/** Ranges of steps around the changed ones; near ones are joined. */
function hunks(changed: number[], length: number): [number, number][] {
  const found: [number, number][] = [];
  for (const at of changed) {
    const last = found.at(-1);
    const [from, to] = [Math.max(0, at - AROUND), Math.min(length, at + AROUND + 1)];
    if (last && from <= last[1]) last[1] = to;
    else found.push([from, to]);
  }
  return found;
}

/** The longest common lines stay, the others go or come. */
function compared(before: string[], after: string[]): Step[] {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < Math.min(before.length, after.length) - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const same = (lines: string[]): Step[] => lines.map((text) => ({ sign: ' ', text }));
  const middle = between(before.slice(head, before.length - tail), after.slice(head, after.length - tail));
  return [...same(before.slice(0, head)), ...middle, ...same(before.slice(before.length - tail))];
}

function between(before: string[], after: string[]): Step[] {
  const gone = (text: string): Step => ({ sign: '-', text });
  const came = (text: string): Step => ({ sign: '+', text });
  const width = after.length + 1;
  if ((before.length + 1) * width > MOST_CELLS) return [...before.map(gone), ...after.map(came)];
  const common = new Uint16Array((before.length + 1) * width);
  const at = (row: number, column: number) => common[row * width + column] ?? 0;
  for (let row = before.length - 1; row >= 0; row -= 1)
    for (let column = after.length - 1; column >= 0; column -= 1)
      common[row * width + column] = before[row] === after[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
  const steps: Step[] = [];
  let [row, column] = [0, 0];
  while (row < before.length || column < after.length) {
    const [one, other] = [before[row], after[column]];
    if (one !== undefined && one === other) {
      steps.push({ sign: ' ', text: one });
      row += 1;
      column += 1;
    } else if (one !== undefined && (other === undefined || at(row + 1, column) >= at(row, column + 1))) {
      steps.push(gone(one));
      row += 1;
    } else {
      steps.push(came(other ?? ''));
      column += 1;
    }
  }
  return steps;
}

/** The curve of one job in a picture of two. */
export interface Curve {
  line: string;
  last: number;
}

export interface Overlay {
  name: string;
  /** Whether it was measured of tasks, and not reported by the programs. */
  measured: boolean;
  /** One for each job; null where it has no such figure. */
  curves: [Curve | null, Curve | null];
  low: number;
  high: number;
  /** Seconds that the picture is wide, from each job's start. */
  seconds: number;
}

/** When a job's figures are counted from, and what is known of them. */
export interface Run {
  start: string;
  answer: SeriesAnswer;
}

/** The figures of two jobs by name, each drawn over the other from the start of its own job. */
export function overlays(runs: [Run, Run], width: number, height: number): Overlay[] {
  const byName = runs.map(({ answer }) => new Map<string, SeriesView>([...named(answer).reported, ...named(answer).measured] satisfies Named[]));
  const reported = new Set(runs.flatMap(({ answer }) => named(answer).reported.map(([name]) => name)));
  const names = [...new Set(byName.flatMap((each) => [...each.keys()]))].sort((one, other) => one.localeCompare(other));
  return names.flatMap((name) => {
    const points = runs.map((run, at) => pointsOf(run, byName[at]?.get(name)));
    const all = points.flat();
    if (all.length === 0) return [];
    const seconds = Math.max(...all.map(([second]) => second), 1);
    const low = Math.min(...all.map(([, value]) => value));
    const high = Math.max(...all.map(([, value]) => value));
    const y = (value: number) => (high === low ? height / 2 : height * (1 - (value - low) / (high - low)));
    const curve = (of: [number, number][] = []): Curve | null => {
      const last = of.at(-1);
      if (!last) return null;
      const path = of.map(([second, value]) => `${round((width * second) / seconds)} ${round(y(value))}`);
      return { line: path.length === 1 ? `M${path[0]}h0` : `M${path.join('L')}`, last: last[1] };
    };
    return [{ name, measured: !reported.has(name), curves: [curve(points[0]), curve(points[1])], low, high, seconds }];
  });
}

const round = (value: number) => Math.round(value * 10) / 10;

/** The means of a series, with the seconds since the job's start. */
function pointsOf({ start, answer }: Run, series: SeriesView | undefined): [number, number][] {
  if (!series) return [];
  const offset = (Date.parse(answer.begin) - Date.parse(start)) / 1000;
  return series.mean.flatMap((value, at) => (value === null ? [] : [[Math.max(0, offset + (at + 0.5) * answer.step), value] as [number, number]]));
}
