import { expect, it } from 'vitest';
import type { DeviceStay, DeviceTimeline } from '../api/types';
import { fitting, listed, marks, rows, spoken, timelineLine } from './devicetimeline';

const at = (hour: number) => new Date(Date.UTC(2026, 10, 28, 12 + hour)).toISOString();
const stay = (job: string, begin: number, end: number | null, devices = [0, 1], node = 'local/n1'): DeviceStay => ({
  job, name: job, user: 'ada', queue: 'default', node, devices, begin: at(begin), end: end === null ? null : at(end),
});
const day = (past: DeviceStay[], expected: DeviceStay[]): DeviceTimeline => ({
  at: at(0), begin: at(-24), end: at(24), nodes: [{ name: 'local/n1', devices: 4 }], past, expected, pastLeftOut: 0, expectedLeftOut: 0,
  forecastUntil: at(18), trouble: '', next: null,
});

it('draws what was up to now and what is expected from now on', () => {
  const timeline = day([stay('old', -30, -12), stay('runs', -6, null, [0, 2])], [stay('runs', -1, 6), stay('next', 6, null)]);
  const [row] = rows(timeline);
  const bars = row?.bars.map(({ stay: { job }, expected, left, width, from, count }) => [job, expected, left, width, from, count]);
  expect(bars).toEqual([
    ['old', false, 0, 0.25, 0, 2],
    ['runs', false, 0.375, 0.125, 0, 1],
    ['runs', false, 0.375, 0.125, 2, 1],
    ['runs', true, 0.5, 0.125, 0, 2],
    ['next', true, 0.625, 0.25, 0, 2],
  ]);
  expect(spoken(row!)).toBe('local/n1, 4 devices: jobs that were here 1, that run 1, that are expected 2');
  expect(listed(timeline).map((each) => each.stay.job)).toEqual(['old', 'runs', 'runs', 'next']);
});

it('first shows as few hours as have all of the past', () => {
  expect(fitting(undefined)).toBe('24');
  expect(fitting(day([], [stay('next', 2, 3)]))).toBe('24');
  expect(fitting(day([stay('new', -0.5, null)], []))).toBe('1');
  expect(fitting(day([stay('new', -0.5, null), stay('first', -4, -3)], []))).toBe('6');
  expect(fitting(day([stay('old', -30, -12), stay('new', -0.5, null)], []))).toBe('24');
});

it('leaves out stays of nodes that it does not have and such as ended before now', () => {
  const [row] = rows(day([stay('other', -3, -2, [0], 'local/n9')], [stay('short', -2, -1)]));
  expect(row?.bars).toEqual([]);
});

it('marks whole steps around now', () => {
  expect(marks(day([], [])).map(({ word }) => word)).toEqual(['-18h', '-12h', '-6h', 'now', '6h', '12h', '18h']);
  expect(marks(day([], [])).find(({ word }) => word === 'now')?.at).toBe(0.5);
  const near = { ...day([], []), begin: at(-1), end: at(1) };
  expect(marks(near).map(({ word }) => word)).toEqual(['-45m', '-30m', '-15m', 'now', '15m', '30m', '45m']);
});

it('writes the command that shows the same', () => {
  expect(timelineLine('', '24')).toBe('corral nodes timeline');
  expect(timelineLine('local/n1', '6')).toBe('corral nodes timeline local/n1 --hours 6');
});
