import { expect, it } from 'vitest';
import { steady } from './steady';

const items = (...ids: string[]) => ids.map((id) => ({ id, fresh: true }));
const ids = (rows: { id: string }[]) => rows.map((row) => row.id);

it('shows what is new at once while nobody holds the list', () => {
  expect(steady(['b', 'a'], items('c', 'b', 'a'), false)).toMatchObject({ held: 0, rows: [{ id: 'c' }, { id: 'b' }, { id: 'a' }] });
});

it('keeps rows in their places while held, and counts what is kept back', () => {
  const { rows, held } = steady(['b', 'a'], items('d', 'c', 'b', 'a'), true);
  expect([ids(rows), held]).toEqual([['b', 'a'], 2]);
  expect(rows.every((row) => row.fresh)).toBe(true);
});

it('still shows the next page while held', () => {
  expect(ids(steady(['c', 'b'], items('d', 'c', 'b', 'a'), true).rows)).toEqual(['c', 'b', 'a']);
});

it('drops rows that are gone', () => {
  expect(ids(steady(['c', 'b', 'a'], items('c', 'a'), true).rows)).toEqual(['c', 'a']);
});

it('holds nothing before anything was shown', () => {
  expect(ids(steady([], items('a'), true).rows)).toEqual(['a']);
});
