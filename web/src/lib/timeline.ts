/** A timeline as it is drawn: a row for each node, in it a bar for each run of neighbouring devices that a job is on. */

import type { Stay, Timeline } from '../api/types';

export interface Bar<S = Stay> {
  stay: S;
  /** Parts of the row's width, 0 to 1. */
  left: number;
  width: number;
  /** The first device, and how many. */
  from: number;
  count: number;
}

export interface Row<B = Bar> {
  name: string;
  devices: number;
  bars: B[];
}

/** The rows of one course, in the order of its nodes. */
export function rows(timeline: Timeline, stays: readonly Stay[], horizon: number): Row[] {
  const found = new Map<string, Row>(timeline.nodes.map((node) => [node.name, { ...node, bars: [] }]));
  for (const stay of stays) {
    const left = Math.min(1, stay.begin / horizon);
    const width = Math.min(1, (stay.end ?? horizon) / horizon) - left;
    for (const [from, count] of neighbours(stay.devices)) found.get(stay.node)?.bars.push({ stay, left, width, from, count });
  }
  return [...found.values()];
}

/** Indexes in runs without a gap: `[0, 1, 3]` is one from 0 of two, and one from 3 of one. */
export function neighbours(indexes: readonly number[]): [from: number, count: number][] {
  const found: [number, number][] = [];
  for (const index of [...indexes].sort((a, b) => a - b)) {
    const last = found.at(-1);
    if (last && last[0] + last[1] === index) last[1] += 1;
    else found.push([index, 1]);
  }
  return found;
}

/** Moments to mark on the axis, in seconds: at most eight, at whole hours or days. */
export function ticks(horizon: number): number[] {
  const steps = [1, 2, 3, 6, 12, 24, 48, 168].map((hours) => hours * 3600);
  const step = steps.find((each) => horizon / each <= 8) ?? horizon;
  const found = [];
  for (let at = step; at < horizon; at += step) found.push(at);
  return found;
}
