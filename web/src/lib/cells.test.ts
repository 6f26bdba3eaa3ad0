import { expect, it } from 'vitest';
import type { Cell, Device } from '../api/types';
import { HUES, hues, joiningLevels, nodesOfJobs, racks, runs } from './cells';

function device(index: number, job = '', healthy = true): Device {
  const holder = job ? { id: job, name: job, user: 'ada', role: 'worker', index: 0, share: null } : null;
  const known = { kind: 'gpu', model: '', memoryBytes: 0, described: true, cells: {}, node: 'local/n', parent: -1 };
  return { ...known, index, id: `n:${index}`, healthy, healthReason: '', free: healthy && !holder, job: holder, others: [] };
}
function cell(level: string, name: string, cells: Cell[], holds: Device[] = []): Cell {
  const devices = holds.length + cells.reduce((sum, each) => sum + each.devices, 0);
  const free = holds.filter((each) => !each.job).length + cells.reduce((sum, each) => sum + each.free, 0);
  return { level, name, devices, free, ready: true, cells, holds };
}
const switches = [cell('pcie-switch', '0', [], [device(0, 'a'), device(1, 'a')]), cell('pcie-switch', '1', [], [device(2), device(3)])];

it('finds the level right above the nodes, whatever it is', () => {
  const node = (name: string) => cell('node', name, switches);
  const tree = cell('root', 'cluster', [
    cell('engine', 'local', [cell('rack', 'rack1', [node('local/n1'), node('local/n2')])]),
    cell('engine', 'other', [node('other/n3')]),
  ]);
  expect(racks(tree).map(({ name, level, engine, devices, free }) => [name, level, engine, devices, free])).toEqual([
    ['rack1', 'rack', 'local', 8, 4],
    ['other', 'engine', 'other', 4, 2],
  ]);
  expect(nodesOfJobs(racks(tree)).get('a')).toEqual(['local/n1', 'local/n2', 'other/n3']);
});

it('names groups by the cells between node and device', () => {
  const tree = cell('rack', 'r', [cell('node', 'n', [cell('numa', '0', switches)])]);
  expect(racks(tree)[0]?.nodes[0]?.groups.map((group) => group.name)).toEqual(['numa 0, pcie-switch 0', 'numa 0, pcie-switch 1']);
});

it('joins neighbours of one job, and leaves free and unhealthy devices alone', () => {
  const cut = runs([device(0, 'a'), device(1, 'a'), device(2, 'b'), device(3), device(4), device(5, 'b'), device(6, 'b', false)]);
  expect(cut.map((run) => [run.job?.id ?? '', run.devices.map((each) => each.index)])).toEqual([
    ['a', [0, 1]],
    ['b', [2]],
    ['', [3]],
    ['', [4]],
    ['b', [5]],
    ['b', [6]],
  ]);
});

it('gives as many jobs as there are hues different ones', () => {
  const ids = HUES.map((_, at) => `job${at}`);
  expect(new Set(hues(ids).values()).size).toBe(HUES.length);
});

it('keeps the hues of a few jobs well apart', () => {
  const few = [...hues(['1m7z9', '1m7za', '1m7zb', '1m7zc', '1m7zd'], new Map()).values()].sort((a, b) => a - b);
  few.forEach((hue, at) => expect(at === 0 ? hue + 360 - few.at(-1)! : hue - few[at - 1]!).toBeGreaterThanOrEqual(40));
});

it('keeps what a job has when others end', () => {
  const known = new Map<string, number>();
  const before = hues(['c1', 'c2', 'c3'], known);
  expect(hues(['c3'], known).get('c3')).toBe(before.get('c3'));
});

it('never repaints an older job because of a newer one', () => {
  const older = hues(['a1', 'a2', 'a3']);
  const all = hues(['b9', 'a3', 'a1', 'a2', 'b8']);
  for (const [id, hue] of older) expect(all.get(id)).toBe(hue);
});

it('names the level of the brackets once, however many cells of it there are and whatever they are in', () => {
  const numa = (name: string) => cell('numa', name, switches);
  const tree = cell('rack', 'r', [cell('node', 'n', [numa('0'), numa('1')]), cell('node', 'm', [numa('0'), numa('1')])]);
  expect(joiningLevels(racks(tree))).toEqual(['pcie-switch']);
  expect(joiningLevels(racks(cell('rack', 'r', [cell('node', 'n', [], [device(0)])])))).toEqual([]);
});
