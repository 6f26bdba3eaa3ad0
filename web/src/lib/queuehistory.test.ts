import { expect, it } from 'vitest';
import type { QueueHistoryWeek } from '../api/types';
import { historyLine, scales, useWords, waitWords } from './queuehistory';

const week = (more: Partial<QueueHistoryWeek>): QueueHistoryWeek => ({
  week: '2026-W48', begin: '2026-11-23T00:00:00Z', started: 0, waitP50: null, waitP95: null, used: 0, borrowed: null, lent: null, ...more,
});

it('says waits and use in words', () => {
  const busy = week({ started: 1200, waitP50: 60, waitP95: 7200, used: 36_000, borrowed: 3600, lent: 0 });
  expect(waitWords(busy)).toBe('1,200 started: half waited at most 1m, 95 % at most 2h');
  expect(useWords(busy)).toBe('10.00 device-hours held, 1.00 borrowed, 0.00 lent');
  expect(waitWords(week({}))).toBe('no job started');
  expect(useWords(week({ used: 3600 }))).toBe('1.00 device-hours held, borrowed and lent not known');
});

it('scales bars by the longest wait and the most use', () => {
  expect(scales([week({ waitP95: 60, used: 100, lent: 300 }), week({})])).toEqual({ wait: 60, use: 300 });
  expect(scales([])).toEqual({ wait: 1, use: 1 });
  expect(historyLine('my queue')).toBe("corral queues 'my queue' --history");
});
