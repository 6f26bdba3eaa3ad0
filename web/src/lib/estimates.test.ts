import { expect, test } from 'vitest';
import type { QueueEstimates } from '../api/types';
import { bias, estimatesLine, held, reach, span } from './estimates';

const queue = { queue: 'research', held: 8, early: 1, late: 1, coverage: 0.8 } as QueueEstimates;

test('coverage is told with the number of judged intervals', () => {
  expect(held(queue)).toBe('80 % of 10 intervals held');
  expect(held({ ...queue, coverage: null })).toBe('nothing to judge yet');
});

test('bias is later or earlier', () => {
  expect(bias(90)).toBe('1m 30s later');
  expect(bias(-3600)).toMatch(/^1h.* earlier$/);
  expect(bias(0.4)).toBe('none');
  expect([bias(null), span(null)]).toEqual(['–', '–']);
});

test('bars reach from nothing to the widest', () => {
  expect([reach(null, 10), reach(0, 10), reach(5, 10), reach(50, 10), reach(5, 0)]).toEqual([0, 0.005, 0.5, 1, 0]);
});

test('the command line has what differs from its defaults', () => {
  expect(estimatesLine('', '7')).toBe('corral estimates');
  expect(estimatesLine('research', '30')).toBe('corral estimates --queue research --days 30');
});
