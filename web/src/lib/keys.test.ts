// @vitest-environment happy-dom
import { act, cleanup, renderHook } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { useRowSteps } from './keys';

afterEach(cleanup);

function steps(rows: string[], shown: string) {
  const chosen: string[] = [];
  const hook = renderHook(({ at }) => useRowSteps(rows, at, (row) => chosen.push(row)), { initialProps: { at: shown } });
  return { chosen, step: (by: number) => act(() => hook.result.current(by)), show: (at: string) => hook.rerender({ at }) };
}

it('begins with the first row and stays within the rows', () => {
  const { chosen, step, show } = steps(['one', 'two', 'three'], '');
  step(1);
  step(-1);
  show('three');
  step(1);
  expect(chosen).toEqual(['one', 'one', 'three']);
});

it('goes two rows on for two keys, also before the page shows the first', () => {
  const { chosen, step } = steps(['one', 'two', 'three'], 'one');
  step(1);
  step(1);
  expect(chosen).toEqual(['two', 'three']);
});

it('goes on from the row that the page shows by now', () => {
  const { chosen, step, show } = steps(['one', 'two', 'three'], 'one');
  step(1);
  show('three');
  step(-1);
  expect(chosen).toEqual(['two', 'two']);
});

it('chooses nothing where there is no row', () => {
  const { chosen, step } = steps([], '');
  step(1);
  expect(chosen).toEqual([]);
});
