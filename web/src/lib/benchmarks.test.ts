import { describe, expect, it } from 'vitest';
import type { BenchmarkPoint } from '../api/types';
import { change, figure, historyLine, historyWords, linesOf, pathOf } from './benchmarks';

const point = (node: string, hour: number, value: number, slow = false): BenchmarkPoint => ({
  node, sku: 'small', run: `run${hour}`, at: `2026-01-31T0${hour}:00:00.000Z`, value, rank: 0, slow,
});
const history = {
  metric: 'cpu-stream/triad_bw', unit: 'GB/s', largerIsBetter: true, cut: false,
  points: [point('a', 1, 100), point('b', 1, 50), point('a', 3, 60, true), point('b', 3, 100)],
};

describe('the history of a measurement', () => {
  it('has a line for each node, and those below their like are drawn last', () => {
    const lines = linesOf(history);
    expect(lines.map(({ node, slow }) => [node, slow])).toEqual([['b', false], ['a', true]]);
    expect(lines.map((line) => pathOf(line, 100, 10))).toEqual(['M0.0 5.0L100.0 0.0', 'M0.0 0.0L100.0 4.0']);
  });
  it('puts a single run into the middle', () => {
    expect(linesOf({ points: [point('a', 1, 0)] })[0]?.places).toEqual([{ x: 0.5, y: 1, point: point('a', 1, 0) }]);
  });
  it('is told in a sentence', () => {
    expect(historyWords(history)).toBe('cpu-stream/triad_bw of 2 nodes in 2 runs, from 50 to 100 GB/s; below their like: a');
    expect(historyWords({ ...history, points: [point('a', 1, 2)] })).toContain('of 1 node in 1 run, from 2 to 2 GB/s; none below its like');
  });
});

describe('figures', () => {
  it('have four digits, and changes a sign', () => {
    expect([figure(1234.56), figure(0.012345), figure(null)]).toEqual(['1,235', '0.01235', '–']);
    expect([change(0.1234), change(-0.4), change(null)]).toEqual(['+12.3 %', '-40.0 %', '–']);
  });
  it('are asked for by the same command', () => {
    expect(historyLine('', '')).toBe('corral benchmark history');
    expect(historyLine('local/a', 'x/y_bw')).toBe('corral benchmark history local/a --measurement x/y_bw');
  });
});
