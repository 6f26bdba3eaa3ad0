import { describe, expect, it } from 'vitest';
import type { FairnessReport, FairnessRow } from '../api/types';
import { fairnessLine, fairnessWords, ratioWords, weekOf, weeksUpTo } from './fairness';

const row = (queue: string, ratio: number | null): FairnessRow => ({
  queue,
  owed: 3_600,
  got: 3_600,
  ratio,
  started: 1,
  waitP50: 4,
  waitP95: 190,
  worstFinishTimeRatio: null,
  worstJob: '',
});
const report = (more: Partial<FairnessReport> = {}): FairnessReport => ({
  begin: '2026-11-16T00:00:00.000Z',
  end: '2026-11-23T00:00:00.000Z',
  items: [],
  jain: null,
  worstFinishTimeRatio: null,
  waitP50: null,
  waitP95: null,
  users: [],
  jobs: [],
  unknown: [],
  ...more,
});

describe('the fairness of a week', () => {
  it('has the name of its ISO week', () => {
    const days = ['2026-11-22T23:59:59Z', '2026-11-23', '2026-01-01', '2027-01-03', '2027-01-04', '2024-12-30', '2020-12-31'];
    expect(days.map((day) => weekOf(Date.parse(day)))).toEqual(['2026-W47', '2026-W48', '2026-W01', '2026-W53', '2027-W01', '2025-W01', '2020-W53']);
    expect(weeksUpTo(Date.parse('2027-01-05'), 3)).toEqual(['2027-W01', '2026-W53', '2026-W52']);
  });
  it('says in words how even it was and who got less than it was owed', () => {
    const items = [row('research', 0.6), row('production', 1.2), row('teaching', null)];
    expect(fairnessWords(report({ items, jain: 0.9, waitP50: 4, waitP95: 190, worstFinishTimeRatio: 6.75 }))).toEqual([
      "Jain's index of 2 queues is 0.900: 1 is even, 0.50 would be one queue that got everything.",
      'research got least of what it was owed: 60 %.',
      'Half of the jobs that started waited at most 4s, and 95 % at most 3m 10s.',
      'The slowest job took 6.8 times as long as it needed its devices.',
    ]);
    expect(fairnessWords(report())).toEqual([]);
    expect(fairnessWords(report({ items: [row('only', 1)], jain: 1 }))).toEqual([]);
  });
  it('tells less and more by a shape', () => {
    expect([0.89, 0.91, 1.11, null].map((ratio) => ratioWords({ ratio }).shape)).toEqual(['▼', '●', '▲', '']);
  });
  it('has a command', () => {
    expect([fairnessLine(''), fairnessLine('2026-W48')]).toEqual(['corral usage fairness', 'corral usage fairness --week 2026-W48']);
  });
});
