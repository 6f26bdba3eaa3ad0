/** Devices over time as they are drawn: a row for each node, in it a bar for each run of neighbouring devices of a stay. */

import type { DeviceStay, DeviceTimeline } from '../api/types';
import { timeline as texts } from '../texts/english/timeline';
import { counted, number as written } from '../texts/fill';
import { quote } from './cli';
import { neighbours, type Bar as StayBar, type Row as NodeRow } from './timeline';
import { between, duration } from './time';

export const HOURS = ['1', '6', '24'] as const;
/** The last one is usual. */
export const USUAL = '24';

/** The hours of a first look: as few as show all that an answer has of the past, so that a new server is not one line at now. */
export function fitting(timeline: Pick<DeviceTimeline, 'at' | 'past'> | undefined): (typeof HOURS)[number] {
  if (!timeline?.past.length) return USUAL;
  const back = Math.max(...timeline.past.map(({ begin }) => between(begin, timeline.at)));
  return HOURS.find((each) => back <= Number(each) * 3600) ?? USUAL;
}

export interface Bar extends StayBar<DeviceStay> {
  expected: boolean;
}
export type Row = NodeRow<Bar>;

/** Where a time is between begin and end, 0 to 1. */
export function place(time: string, timeline: Pick<DeviceTimeline, 'begin' | 'end'>): number {
  const part = between(timeline.begin, time) / between(timeline.begin, timeline.end);
  return Math.min(1, Math.max(0, part));
}

/** The rows of one answer. What is expected begins no earlier than now, so that it never covers what was. */
export function rows(timeline: DeviceTimeline): Row[] {
  const found = new Map<string, Row>(timeline.nodes.map((node) => [node.name, { ...node, bars: [] }]));
  const now = place(timeline.at, timeline);
  const add = (stay: DeviceStay, expected: boolean) => {
    const left = Math.max(place(stay.begin, timeline), expected ? now : 0);
    const last = stay.end ? place(stay.end, timeline) : expected ? place(timeline.forecastUntil ?? timeline.end, timeline) : now;
    if (last < left) return;
    for (const [from, count] of neighbours(stay.devices)) found.get(stay.node)?.bars.push({ stay, expected, left, width: last - left, from, count });
  };
  for (const stay of timeline.past) add(stay, false);
  for (const stay of timeline.expected) add(stay, true);
  return [...found.values()];
}

/** Moments to mark, as parts of the width, with their distance from now: `-12h`, `now`, `6h`. */
export function marks(timeline: DeviceTimeline): { at: number; word: string; now: boolean }[] {
  const back = between(timeline.begin, timeline.at);
  const ahead = between(timeline.at, timeline.end);
  const step = [600, 900, 3600, 7200, 21_600, 43_200].find((each) => (back + ahead) / each <= 8) ?? 43_200;
  const found = [];
  for (let number = -Math.floor((back - 1) / step); number * step < ahead - 1; number += 1) {
    const at = (back + number * step) / (back + ahead);
    found.push({ at, word: number === 0 ? texts.now : `${number < 0 ? '-' : ''}${duration(Math.abs(number) * step)}`, now: number === 0 });
  }
  return found;
}

/** All stays of one answer for the table: by node, what was before what is expected, each by time. */
export function listed(timeline: DeviceTimeline): { stay: DeviceStay; expected: boolean }[] {
  const all = [...timeline.past.map((stay) => ({ stay, expected: false })), ...timeline.expected.map((stay) => ({ stay, expected: true }))];
  const key = ({ stay, expected }: (typeof all)[number]) => `${stay.node} ${expected ? 1 : 0} ${stay.begin}`;
  return all.sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

/** The row in words: how many jobs were there, are there and are expected. */
export function spoken(row: Row): string {
  const jobs = (which: (bar: Bar) => boolean) => new Set(row.bars.filter(which).map(({ stay }) => stay.job)).size;
  const was = jobs(({ expected, stay }) => !expected && stay.end !== null);
  const runs = jobs(({ expected, stay }) => !expected && stay.end === null);
  const comes = jobs(({ expected }) => expected);
  return counted(texts.nodeSpoken, row.devices, { node: row.name, was: written(was), runs: written(runs), comes: written(comes) });
}

export function timelineLine(node: string, hours: string): string {
  const words = ['corral', 'nodes', 'timeline'];
  if (node) words.push(quote(node));
  if (hours !== USUAL) words.push('--hours', hours);
  return words.join(' ');
}
