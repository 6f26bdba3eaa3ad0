import { expect, it } from 'vitest';
import type { CellDevice, CellState, DeviceUse } from '../api/types';
import { marked, marks, NO_MARKS } from './marks';

const use = (change: Partial<DeviceUse> = {}): DeviceUse => ({
  job: 'j', name: 'digits', user: 'ada', queue: 'lab', role: 'worker', index: 0, priority: 10, standing: 'guaranteed', leaving: false, share: 100, ...change,
});
const device = (index: number, uses: DeviceUse[] = [], change: Partial<CellDevice> = {}): CellDevice => ({
  index, id: `n:${index}`, kind: 'gpu', model: '', state: uses.length ? 'used' : 'free', reason: '', owner: '', pinned: false, uses, ...change,
});
const NOTHING = { devices: 0, free: 0, used: 0, leaving: 0, guests: 0, unhealthy: 0, closed: 0, inside: 0 };
const cell = (level: string, id: string, cells: CellState[], holds: CellDevice[] = [], change: Partial<CellState> = {}): CellState => ({
  ...NOTHING, id, level, name: id, owners: {}, owner: '', pinned: false, whole: false, queues: {}, state: '', reason: '', cells, holds, ...change,
});

it('finds the marks of devices by their node, through the cells inside it', () => {
  const node = cell('node', 'local|node:local/n1', [
    cell('pcie-switch', 'local|pcie-switch:local/n1/0', [], [device(0, [use()], { owner: 'lab' }), device(1, [use({ standing: 'guest', leaving: true })])]),
    cell('pcie-switch', 'local|pcie-switch:local/n1/1', [], [device(2, [], { owner: 'art', pinned: true })]),
  ]);
  const found = marks(cell('root', '', [cell('engine', 'local|engine:local', [node])]));
  expect(found.devices.get(marked('local/n1', 0))).toEqual({ owner: 'lab', pinned: false, standing: 'guaranteed', leaving: false });
  expect(found.devices.get(marked('local/n1', 1))).toEqual({ owner: '', pinned: false, standing: 'guest', leaving: true });
  expect([found.owners, found.guests, found.leaving, found.pinned]).toEqual([['art', 'lab'], true, true, true]);
});

it('knows who closed a node, and a device with a guest among others as a guest of it', () => {
  const node = cell('node', 'local|node:local/n1', [], [device(0, [use(), use({ standing: 'guest' })])], { state: 'cordoned', reason: 'new cables' });
  const found = marks(node);
  expect(found.nodes.get('local/n1')).toEqual({ state: 'cordoned', reason: 'new cables', owner: '' });
  expect(found.devices.get(marked('local/n1', 0))?.standing).toBe('guest');
});

it('knows the owner of a node whose devices were left out of the answer', () => {
  const found = marks(cell('rack', 'local|rack:r1', [cell('node', 'local|node:local/n1', [], [], { owner: 'lab' })]));
  expect([found.nodes.get('local/n1')?.owner, found.owners]).toEqual(['lab', ['lab']]);
});

it('marks nothing while nobody answers', () => {
  expect(marks(undefined)).toBe(NO_MARKS);
});
