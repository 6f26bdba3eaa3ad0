import { expect, it } from 'vitest';
import type { DeviceStay } from '../api/types';
import { held, heldWords, stepLine } from './held';

const at = (hour: number) => new Date(Date.UTC(2026, 10, 28, hour)).toISOString();
const stay = (begin: number, end: number | null, devices: number[], node = 'local/n1'): DeviceStay => ({
  job: 'j', name: 'j', user: 'ada', queue: 'default', node, devices, begin: at(begin), end: end === null ? null : at(end),
});
const day = { begin: at(6), at: at(12), past: [stay(0, 9, [0]), stay(6, 9, [0, 1]), stay(11, null, [3]), stay(6, null, [2], 'local/n2')] };

it('counts each device of the node once', () => {
  const found = held(day, 'local/n1');
  expect([found[0], found[34], found[50], found.at(-1)]).toEqual([2, 2, 0, 1]);
  expect(held(day, 'local/n1', 3).filter(Boolean)).toHaveLength(13);
});

it('says them in words', () => {
  expect(heldWords([2, 2, 0, 1], 4, 6)).toBe('1 of 4 devices held now, 1.3 on average of the last 6 hours');
  expect(heldWords([1, 1, 0, 0], 1, 6)).toBe('held 50 % of the last 6 hours');
});

it('draws steps from the bottom up', () => {
  expect(stepLine([0, 2, 4], 4, 30, 8)).toBe('M0 8H10V4H20V0H30');
});
