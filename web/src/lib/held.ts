/** How many devices of a node were held over time, from the stays of jobs there. */

import type { DeviceStay, DeviceTimeline } from '../api/types';
import { counts } from '../texts/english/counts';
import { map as texts } from '../texts/english/map';
import { counted, fill, number } from '../texts/fill';

/** Moments at which it is counted. */
const SAMPLES = 72;

/** The devices that were held, at equal distances from the begin to the time of the answer. */
export function held(timeline: Pick<DeviceTimeline, 'at' | 'begin' | 'past'>, node: string, device?: number): number[] {
  const begin = Date.parse(timeline.begin);
  const end = Date.parse(timeline.at);
  const stays = timeline.past.filter((stay) => stay.node === node).map(timed);
  return Array.from({ length: SAMPLES }, (_, number) => {
    const at = begin + ((number + 1) / SAMPLES) * (end - begin);
    const there = new Set(stays.filter((stay) => stay.begin <= at && at <= stay.end).flatMap(({ devices }) => devices));
    return device === undefined ? there.size : Number(there.has(device));
  });
}

const timed = ({ begin, end, devices }: DeviceStay) => ({ begin: Date.parse(begin), end: end ? Date.parse(end) : Infinity, devices });

/** The counts as a line of steps in a box; `most` is at its top. */
export function stepLine(counts: readonly number[], most: number, width: number, height: number): string {
  const y = (value: number) => round(height - (height * value) / Math.max(1, most));
  const step = width / counts.length;
  return counts.map((value, at) => `${at === 0 ? 'M0 ' : 'V'}${y(value)}H${round((at + 1) * step)}`).join('');
}

const round = (value: number) => Math.round(value * 10) / 10;

/** The counts in words. */
export function heldWords(numbers: readonly number[], devices: number, hours: number): string {
  const mean = numbers.reduce((sum, each) => sum + each, 0) / Math.max(1, numbers.length);
  const span = fill(texts.span, { hours: counted(counts.hours, hours) });
  if (devices === 1) return fill(texts.heldPart, { round: Math.round(100 * mean), span });
  return counted(texts.heldNow, devices, { at: number(numbers.at(-1) ?? 0), value: number(mean, { maximumFractionDigits: 1 }), span });
}
