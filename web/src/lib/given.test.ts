import { expect, it } from 'vitest';
import { parseDocument } from 'yaml';
import type { Queue } from '../api/types';
import { boundResources, type Given, given, newCells, putGiven, withEdit } from './given';

const queue = (name: string, doc: Record<string, unknown> = {}) => ({ name, doc }) as unknown as Queue;
const OWN = {
  guaranteed: { devices: '2' },
  limit: { devices: '8', memory: '64Gi' },
  cells: [
    { level: 'node', model: 'H100', count: 2 },
    { level: '', cellType: 'A100-NODE', model: '', count: 1 },
  ],
  pinnedCells: ['login'],
};
const TEXT = `kind: VirtualCluster
name: a
guaranteed: {devices: "2"} # since May
limit:
  devices: "8"
  # as agreed
  memory: 64Gi
cells:
  # the new ones
  - level: node
    model: H100
    count: 2 # of four
  - cellType: A100-NODE
pinnedCells: [login]
`;

function put(text: string, place: readonly string[], now: (was: Given) => Given, doc: Record<string, unknown> = OWN): string {
  const file = parseDocument(text);
  const was = given(doc as Queue['doc']);
  putGiven(file, place, was, now(was));
  return file.toString({ lineWidth: 0, flowCollectionPadding: false });
}
const bound = (was: Given, name: keyof Given['bounds'], amounts: Record<string, string>): Given => ({ ...was, bounds: { ...was.bounds, [name]: amounts } });

it('reads the fields of a queue, and offers every resource that one has', () => {
  expect(given(OWN as unknown as Queue['doc'])).toEqual({
    bounds: { guaranteed: { devices: '2' }, limit: { devices: '8', memory: '64Gi' }, borrowingLimit: {}, lendingLimit: {}, userLimit: {}, groupLimit: {} },
    cells: [
      { at: 0, by: 'level', what: 'node', model: 'H100', count: '2' },
      { at: 1, by: 'cellType', what: 'A100-NODE', model: '', count: '1' },
    ],
    pinned: 'login',
  });
  expect(boundResources([queue('a', OWN), queue('b', { deserved: { 'devices/h100': '1' } })])).toEqual(['devices', 'cpu', 'memory', 'devices/h100']);
});

it('forgets fields that are as they were', () => {
  const own = queue('a', OWN);
  const was = given(own.doc);
  const once = withEdit({}, own, bound(was, 'limit', { devices: '9', memory: '64Gi' }));
  expect(Object.keys(once)).toEqual(['a']);
  expect(withEdit(once, own, bound(was, 'limit', { devices: ' 8', memory: '64Gi', cpu: ' ' }))).toEqual({});
});

it('changes what differs and keeps comments', () => {
  expect(put(TEXT, [], (was) => was)).toBe(TEXT);
  expect(put(TEXT, [], (was) => bound(was, 'limit', { devices: '9', memory: '64Gi' }))).toBe(TEXT.replace('devices: "8"', 'devices: "9"'));
  expect(put(TEXT, [], (was) => bound(was, 'userLimit', { cpu: '4' }))).toBe(`${TEXT}userLimit:\n  cpu: "4"\n`);
  expect(put(TEXT, [], (was) => bound(was, 'borrowingLimit', { devices: '0' }))).toBe(`${TEXT}borrowingLimit:\n  devices: "0"\n`);
  expect(put(`${TEXT}lendingLimit: {devices: "4"}\n`, [], (was) => bound(was, 'lendingLimit', {}), { ...OWN, lendingLimit: { devices: '4' } })).toBe(TEXT);
  const less = put(TEXT, [], (was) => bound(was, 'guaranteed', { devices: '' }));
  expect(less).not.toContain('guaranteed');
  expect(less).toContain('# as agreed');
});

it('changes, adds and takes away cells beside their comments', () => {
  const more = put(TEXT, [], (was) => ({ ...was, cells: [{ ...was.cells[0]!, count: '3' }, was.cells[1]!, { ...newCells, what: 'rack' }] }));
  expect(more).toBe(TEXT.replace('count: 2 # of four', 'count: 3 # of four').replace('A100-NODE\n', 'A100-NODE\n  - level: rack\n    count: 1\n'));
  const other = put(TEXT, [], (was) => ({ ...was, cells: [{ ...was.cells[0]!, by: 'cellType', what: 'H100-NODE', model: '' }] }));
  expect(other).toContain('count: 2 # of four');
  expect(other).toContain('cellType: H100-NODE');
  expect(other).not.toMatch(/level|model|A100/);
  expect(put(TEXT, [], (was) => ({ ...was, cells: [], pinned: '' }))).not.toMatch(/ells/);
  expect(put(TEXT, [], (was) => ({ ...was, pinned: 'login, gate' }))).toContain('login\n  - gate');
});

it('writes into the place of a queue of a cluster, and what is no number as it was typed', () => {
  const cluster = 'kind: Cluster\nqueues:\n  a: {}\n  b:\n';
  const text = put(cluster, ['queues', 'b'], (was) => ({ ...bound(was, 'guaranteed', { devices: '1' }), cells: [{ ...newCells, count: 'two' }] }), {});
  expect(parseDocument(text).toJSON()).toEqual({ kind: 'Cluster', queues: { a: {}, b: { guaranteed: { devices: '1' }, cells: [{ level: 'node', count: 'two' }] } } });
});
