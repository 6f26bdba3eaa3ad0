import { expect, it } from 'vitest';
import { goalText, NO_GOAL, varyText, withMetric } from './goal';

const WAIT = { ...withMetric(NO_GOAL, 'wait.p95'), queue: 'research', node: 'local/node1' };

it('says a goal and what is varied as the language has it', () => {
  expect([goalText(WAIT), varyText(WAIT)]).toEqual(['wait.p95(queue=research) <= 1h', 'nodes-like=local/node1']);
  const quota = { ...WAIT, queue: '', vary: 'queue', varied: 'research', field: 'limit' };
  expect([goalText(quota), varyText(quota)]).toEqual(['wait.p95 <= 1h', 'queue=research:limit.devices']);
  expect(goalText({ ...WAIT, queue: 'a queue' })).toBe('wait.p95(queue="a queue") <= 1h');
});

it('says nothing while there is no goal', () => {
  expect([goalText(NO_GOAL), varyText({ ...NO_GOAL, node: 'local/node1' })]).toEqual(['', '']);
  expect(goalText({ ...WAIT, value: ' ' })).toBe('');
});

it('keeps a value of the same unit, and else proposes one', () => {
  const changed = { ...WAIT, value: '30m' };
  expect(withMetric(changed, 'wait.max').value).toBe('30m');
  expect(withMetric(changed, 'utilisation')).toMatchObject({ comparison: '>=', value: '80%' });
});
