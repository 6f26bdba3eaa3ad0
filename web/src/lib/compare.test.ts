import { expect, it } from 'vitest';
import type { SeriesAnswer } from '../api/types';
import { overlays, unified } from './compare';
import { diffRows } from './diff';

it('says the lines that differ, with the lines around them', () => {
  const before = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l'];
  const after = ['a', 'b', 'X', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm'];
  expect(unified(before.join('\n'), after.join('\n'))).toBe('@@ -1,6 +1,6 @@\n a\n b\n-c\n+X\n d\n e\n f\n@@ -10,3 +10,4 @@\n j\n k\n l\n+m\n');
  expect(unified('same', 'same')).toBe('');
});

it('keeps the longest common lines, and its rows give both texts back', () => {
  const before = 'x\ny\nz\nw'.split('\n');
  const after = 'y\nq\nw\nx'.split('\n');
  const rows = diffRows(unified(before.join('\n'), after.join('\n')));
  expect(rows.filter(({ kind }) => kind !== 'came').map(({ text }) => text)).toEqual(before);
  expect(rows.filter(({ kind }) => kind !== 'gone').map(({ text }) => text)).toEqual(after);
  expect(rows.filter(({ kind }) => kind === 'same').map(({ text }) => text)).toEqual(['y', 'w']);
});

it('compares documents of thousands of lines by whole parts', () => {
  const many = (word: string) => Array.from({ length: 3000 }, (_, at) => `${word} ${at}`).join('\n');
  const rows = diffRows(unified(`head\n${many('a')}\ntail`, `head\n${many('b')}\ntail`));
  expect(rows.filter(({ kind }) => kind === 'gone')).toHaveLength(3000);
  expect(rows.filter(({ kind }) => kind === 'same').map(({ text }) => text)).toEqual(['head', 'tail']);
});

const answer = (begin: string, means: (number | null)[], family = 'corral_job_loss'): SeriesAnswer =>
  ({ begin, end: begin, step: 10, leftOut: 0, items: [{ family, labels: {}, mean: means, low: means, high: means }] }) as unknown as SeriesAnswer;

it('draws both curves from the start of their own jobs, on one scale', () => {
  const first = { start: '2026-11-28T10:00:00Z', answer: answer('2026-11-28T10:00:00Z', [4, null, 2]) };
  const second = { start: '2026-11-28T12:00:00Z', answer: answer('2026-11-28T12:00:20Z', [3, 1]) };
  expect(overlays([first, second], 100, 10)).toEqual([
    { name: 'loss', measured: false, seconds: 35, low: 1, high: 4, curves: [{ line: 'M14.3 0L71.4 6.7', last: 2 }, { line: 'M71.4 3.3L100 10', last: 1 }] },
  ]);
});

it('shows a figure that one of the jobs alone has', () => {
  const start = '2026-11-28T10:00:00Z';
  const found = overlays([{ start, answer: answer(start, [1]) }, { start, answer: answer(start, [null, 5], 'corral_job_speed') }], 100, 10);
  expect(found.map(({ name, curves }) => [name, curves.map((each) => each?.last ?? null)])).toEqual([['loss', [1, null]], ['speed', [null, 5]]]);
});
