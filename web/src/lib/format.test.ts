import { expect, it } from 'vitest';
import { bytes, cut, cpus, heldOf, nodeEnd, ranges, shortNode } from './format';

it.each([
  [0, '0'],
  [512, '512B'],
  [17_179_869_184, '16Gi'],
  [1_610_612_736, '1.5Gi'],
])('writes %d bytes as %s', (amount, shown) => expect(bytes(amount)).toBe(shown));

it.each([
  [[], ''],
  [[3], '3'],
  [[5, 0, 2, 1], '0–2, 5'],
  [[0, 2, 4], '0, 2, 4'],
])('writes the numbers %j as %s', (numbers, shown) => expect(ranges(numbers)).toBe(shown));

it('shows processors without needless digits', () => expect([cpus(2000), cpus(1500)]).toEqual(['2', '1.5']));

it('shows the end of a long node name', () =>
  expect([nodeEnd('kubernetes/node-0012'), nodeEnd('local/node1'), nodeEnd('gpu-pool-a-0012')]).toEqual(['…de-0012', 'node1', '…-a-0012']));
it('names a node without its engine', () => expect([shortNode('local/node1'), shortNode('node1')]).toEqual(['node1', 'node1']));

it.each([
  ['digits', 9, 'digits'],
  ['llm-pretrain', 9, 'llm-pret…'],
  ['sweep-rate-12', 9, 'sweep…-12'],
  ['sweep-12', 5, 'swee…'],
])('cuts %s to %i letters', (name, letters, shown) => expect(cut(name, letters)).toBe(shown));

it('tells the devices that a job holds where they are others than it asks for', () => {
  expect(heldOf({ state: 'running', devices: 12, devicesHeld: 2 })).toBe(2);
  expect(heldOf({ state: 'running', devices: 12, devicesHeld: 12 })).toBeNull();
  expect(heldOf({ state: 'waiting', devices: 12, devicesHeld: 0 })).toBeNull();
  expect(heldOf({ state: 'succeeded', devices: 12, devicesHeld: 0 })).toBeNull();
});
