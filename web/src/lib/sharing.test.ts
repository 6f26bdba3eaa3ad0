import { expect, it } from 'vitest';
import type { Queue } from '../api/types';
import { documentWith, inForce, least, measure, measures, moved, movedQueues, read, siblings, WEIGHT, withMoves, withoutQueues, written } from './sharing';

const queue = (name: string, doc: Record<string, unknown> = {}, owned = 0) => ({ name, doc, standing: { ownedDevices: owned } }) as unknown as Queue;
const devices = measure('devices');
const top = { total: { devices: 16, cpuMillis: 32_000, memoryBytes: 64 * 1024 ** 3 } } as never;

it('reads and writes amounts as documents have them', () => {
  expect([read('devices', '2.5'), read('cpu', '500m'), read('cpu', '8'), read('memory', '2Ti'), read('memory', '512Mi')]).toEqual([2.5, 0.5, 8, 2048, 0.5]);
  expect([written(devices, 2.5), written(measure('cpu'), 0.5), written(measure('cpu'), 8), written(measure('memory'), 16), written(measure('memory'), 1.5), written(WEIGHT, 2)]).toEqual(['2.5', '500m', '8', '16Gi', '1536Mi', 2]);
});

it('offers devices, the resources that some queue deserves, and weights', () => {
  expect(measures([queue('a', { deserved: { memory: '1Gi', 'devices/h100': '4' } }), queue('b')]).map(({ key }) => key)).toEqual(['devices', 'devices/h100', 'memory', 'weight']);
});

it('counts what is kept for a queue as its own, and leaves it that much', () => {
  const kept = queue('a', { guaranteed: { devices: '3' } });
  expect([inForce(kept, devices), least(kept, devices)]).toEqual([3, 3]);
  expect([inForce(queue('b', { weight: 0.05 }), WEIGHT), least(queue('b', { weight: 0.05 }), WEIGHT), inForce(queue('c'), WEIGHT)]).toEqual([0.05, 0.05, 1]);
});

it('gives one neighbour what the other loses, and neither less than its least', () => {
  expect(moved([4, 6, 2], [0, 0, 0], 0, 3)).toEqual([7, 3, 2]);
  expect(moved([4, 6, 2], [0, 5, 0], 0, 3)).toEqual([5, 5, 2]);
  expect(moved([4, 6, 2], [1, 0, 0], 0, -Infinity)).toEqual([1, 9, 2]);
  expect(moved([4, 6, 2], [0, 0, 0], 1, Infinity)).toEqual([4, 8, 0]);
  expect(moved([0.1, 0.2], [0.1, 0.1], 0, 0.1)).toEqual([0.2, 0.1]);
  expect(moved([1, 4], [2, 0], 0, -1)).toEqual([1, 4]);
});

it('divides what a queue deserves among those below it, and the cluster without owned cells at the top', () => {
  const tree = [queue('a', { deserved: { devices: '8' } }), queue('b', { parent: 'a' }), queue('c', { parent: '' }, 4), queue('lost', { parent: 'gone' })];
  const found = siblings(tree, devices, top, (each) => inForce(each, devices));
  expect(found.map(({ parent, queues, total }) => [parent, queues.map(({ name }) => name), total])).toEqual([
    ['', ['a', 'c', 'lost'], 12],
    ['a', ['b'], 8],
  ]);
  expect(siblings(tree, WEIGHT, top, () => 1).map(({ total }) => total)).toEqual([null, null]);
  expect(siblings(tree, measure('cpu'), top, () => 0).map(({ total }) => total)).toEqual([32, null]);
  expect(siblings(tree, devices, undefined, () => 0)[0]?.total).toBeNull();
});

it('forgets a move that ends where it began', () => {
  const queues = [queue('a', { deserved: { devices: '4' } }), queue('b')];
  const once = withMoves({}, devices, { a: 5, b: 0 }, queues);
  expect(once).toEqual({ devices: { a: 5 } });
  const both = withMoves(once, WEIGHT, { b: 2 }, queues);
  expect(movedQueues(both)).toEqual(['a', 'b']);
  expect(withMoves(both, devices, { a: 4 }, queues)).toEqual({ weight: { b: 2 } });
  expect(withoutQueues(both, ['b'])).toEqual({ devices: { a: 5 } });
});

it('changes only what was moved in a document', () => {
  const own = 'apiVersion: corral.dev/v1alpha1\nkind: Queue\nname: a\nlimit:\n  devices: "8"\n';
  expect(documentWith(own, { devices: { a: 5, b: 1 }, weight: { a: 2 } }, (name) => (name === 'a' ? [] : null))).toBe(`${own}deserved:\n  devices: "5"\nweight: 2\n`);
  const cluster = 'kind: Cluster\nqueues:\n  a: {}\n  b:\n    deserved:\n      devices: "4"\n      cpu: "2"\n';
  const text = documentWith(cluster, { devices: { a: 1, b: 3 } }, (name) => ['queues', name]);
  expect(text).toContain('a: {deserved: {devices: "1"}}');
  expect(text).toContain('b:\n    deserved:\n      devices: "3"\n      cpu: "2"');
});
