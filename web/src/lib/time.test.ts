import { describe, expect, it } from 'vitest';
import { absolute, ago, between, duration } from './time';

describe('duration', () => {
  it.each([
    [0, '0s'],
    [0.014, '14ms'],
    [4.26, '4.3s'],
    [7, '7s'],
    [59.9, '59s'],
    [60, '1m'],
    [61, '1m 1s'],
    [3600, '1h'],
    [3660, '1h 1m'],
    [93_784, '1d 2h'],
    [-5, '0s'],
    [Number.NaN, '0s'],
  ])('shows %d seconds as %s', (seconds, shown) => expect(duration(seconds)).toBe(shown));
});

describe('ago', () => {
  const at = '2026-11-21T12:00:00.000Z';
  it.each([
    [1, 'just now'],
    [59, '59s ago'],
    [61, '1m ago'],
    [7300, '2h ago'],
    [200_000, '2d ago'],
  ])('shows %d seconds as %s', (seconds, shown) => expect(ago(at, Date.parse(at) + seconds * 1000)).toBe(shown));
});

it('keeps the milliseconds of an absolute time', () => {
  expect(absolute('2026-11-21T12:08:15.858Z')).toContain('2026-11-21 12:08:15.858 UTC');
});

it('measures from text to text and from text to milliseconds alike', () => {
  const [from, to] = ['2026-11-21T12:00:00.000Z', '2026-11-21T12:00:01.500Z'];
  expect(between(from, to)).toBe(1.5);
  expect(between(from, Date.parse(to))).toBe(1.5);
});
