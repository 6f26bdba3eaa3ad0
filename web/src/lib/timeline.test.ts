import { expect, it } from 'vitest';
import type { Stay, Timeline } from '../api/types';
import { neighbours, rows, ticks } from './timeline';

const stay = (job: string, node: string, devices: number[], begin: number, end: number | null): Stay => ({ job, name: job, user: 'ada', queue: 'default', node, devices, begin, end });

it('joins neighbouring devices', () => {
  expect(neighbours([3, 0, 1])).toEqual([
    [0, 2],
    [3, 1],
  ]);
  expect(neighbours([])).toEqual([]);
});

it('has a row for each node, also for one on which nothing runs', () => {
  const stays = [stay('a', 'n1', [0, 1, 3], 0, 1800), stay('b', 'n1', [2], 1800, null), stay('c', 'gone', [0], 0, 10)];
  const timeline: Timeline = { nodes: [{ name: 'n1', devices: 4 }, { name: 'n2', devices: 4 }], before: [], after: stays, leftOut: 0 };
  const [first, second] = rows(timeline, stays, 3600);
  expect(first?.bars.map((bar) => [bar.stay.job, bar.left, bar.width, bar.from, bar.count])).toEqual([
    ['a', 0, 0.5, 0, 2],
    ['a', 0, 0.5, 3, 1],
    ['b', 0.5, 0.5, 2, 1],
  ]);
  expect(second).toEqual({ name: 'n2', devices: 4, bars: [] });
});

it('marks at most eight moments, none at the ends', () => {
  expect(ticks(6 * 3600)).toEqual([1, 2, 3, 4, 5].map((hours) => hours * 3600));
  for (const hours of [1, 6, 24, 72, 168, 720]) expect(ticks(hours * 3600).length).toBeLessThanOrEqual(8);
  expect(ticks(24 * 3600)[0]).toBe(3 * 3600);
});
