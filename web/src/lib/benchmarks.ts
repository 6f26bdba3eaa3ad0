/** Kept results of benchmarks, as lines of a picture and in words. */

import type { BenchmarkHistory, BenchmarkPoint, BenchmarkRun } from '../api/types';
import { benchmarks as texts } from '../texts/english/benchmarks';
import { counts } from '../texts/english/counts';
import { counted, fill, number } from '../texts/fill';
import { quote } from './cli';

/** The values of one node over time, its places as parts of the picture's width and height. */
export interface Line {
  node: string;
  /** Whether its last value is below its like. */
  slow: boolean;
  places: readonly { x: number; y: number; point: BenchmarkPoint }[];
}

/** A line for each node; those that are below their like come last, so that they are drawn above the others. */
export function linesOf({ points }: Pick<BenchmarkHistory, 'points'>): Line[] {
  const times = points.map(({ at }) => Date.parse(at));
  const first = Math.min(...times);
  const span = Math.max(...times) - first;
  const top = Math.max(...points.map(({ value }) => value)) || 1;
  const byNode = new Map<string, BenchmarkPoint[]>();
  for (const point of points) byNode.set(point.node, [...(byNode.get(point.node) ?? []), point]);
  const lines = [...byNode].map(([node, own]) => ({
    node,
    slow: own.at(-1)?.slow ?? false,
    places: own.map((point) => ({ x: span > 0 ? (Date.parse(point.at) - first) / span : 0.5, y: 1 - point.value / top, point })),
  }));
  return lines.sort((one, other) => Number(one.slow) - Number(other.slow) || one.node.localeCompare(other.node));
}

/** The path of a line in a box of `width` by `height`. */
export function pathOf(line: Line, width: number, height: number): string {
  return `M${line.places.map(({ x, y }) => `${(x * width).toFixed(1)} ${(y * height).toFixed(1)}`).join('L')}`;
}

/** What the picture shows, in a sentence. */
export function historyWords(history: BenchmarkHistory): string {
  const { points, metric, unit } = history;
  const values = points.map(({ value }) => value);
  const runs = new Set(points.map(({ run }) => run)).size;
  const lines = linesOf(history);
  const slow = lines.filter((line) => line.slow).map(({ node }) => node);
  const below = slow.length ? fill(texts.below, { nodes: slow.slice(0, 10).join(', ') }) : texts.noneBelow;
  const high = `${figure(Math.max(...values))} ${unit}`.trimEnd();
  return fill(texts.spoken, { metric, nodes: counted(counts.nodes, lines.length), runs: counted(texts.countedRuns, runs), low: figure(Math.min(...values)), high, below });
}

/** A value with four digits. */
export function figure(value: number | null): string {
  return value === null ? '–' : number(Number(value.toPrecision(4)), { maximumSignificantDigits: 4 });
}

/** A change as a part, with its sign. */
export function change(part: number | null): string {
  return part === null ? '–' : `${part > 0 ? '+' : ''}${number(part * 100, { minimumFractionDigits: 1, maximumFractionDigits: 1 })} %`;
}

/** A time of the server's answers, to the minute in UTC. */
export const minute = (at: string) => at.slice(0, 16).replace('T', ' ');

export function runWords(run: BenchmarkRun): string {
  return fill(texts.run, { time: minute(run.at), suite: run.suite || texts.results, nodes: counted(counts.nodes, run.nodes) });
}

export function historyLine(node: string, metric: string): string {
  const words = ['corral', 'benchmark', 'history'];
  if (node) words.push(quote(node));
  if (metric) words.push('--measurement', quote(metric));
  return words.join(' ');
}
