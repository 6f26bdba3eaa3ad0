/** Turns the API's tree of cells into what the map draws: racks of nodes, whose devices stand in groups and runs. */

import type { Cell, Device, Holding } from '../api/types';

/** Neighbouring devices of one group that the same job holds, or that nobody does. */
export interface Run {
  job: Holding | null;
  devices: Device[];
}
export interface Group {
  /** Such as `pcie-switch 0`; "" where a node has its devices directly. */
  name: string;
  devices: Device[];
  runs: Run[];
}
export interface MapNode {
  name: string;
  ready: boolean;
  devices: number;
  free: number;
  groups: Group[];
}
export interface Rack {
  /** Such as `rack1`, or `local` where nodes have nothing but the engine above them. */
  name: string;
  level: string;
  engine: string;
  devices: number;
  free: number;
  nodes: MapNode[];
}

/** The racks of a tree (whatever level is right above the nodes), in the tree's order. */
export function racks(root: Cell): Rack[] {
  const found: Rack[] = [];
  walk(root, '', found);
  return found;
}

function walk(cell: Cell, engine: string, found: Rack[]): void {
  const inside = cell.level === 'engine' ? cell.name : engine;
  const nodes = cell.cells.filter((each) => each.level === 'node');
  if (nodes.length > 0) {
    found.push({
      name: cell.name,
      level: cell.level,
      engine: inside,
      devices: sum(nodes, 'devices'),
      free: sum(nodes, 'free'),
      nodes: nodes.map(mapNode),
    });
  }
  for (const each of cell.cells) if (each.level !== 'node') walk(each, inside, found);
}

function sum(cells: Cell[], field: 'devices' | 'free'): number {
  return cells.reduce((total, each) => total + each[field], 0);
}

function mapNode(cell: Cell): MapNode {
  const groups: Group[] = [];
  gather(cell, [], groups);
  return { name: cell.name, ready: cell.ready, devices: cell.devices, free: cell.free, groups };
}

function gather(cell: Cell, path: string[], groups: Group[]): void {
  if (cell.holds.length > 0) {
    const devices = [...cell.holds].sort((a, b) => a.index - b.index);
    groups.push({ name: path.join(', '), devices, runs: runs(devices) });
  }
  for (const each of cell.cells) gather(each, [...path, `${each.level} ${each.name}`], groups);
}

/** Cuts devices into runs; unhealthy ones stand alone, so that the map can mark them. */
export function runs(devices: Device[]): Run[] {
  const cut: Run[] = [];
  for (const device of devices) {
    const last = cut.at(-1);
    const joins = last && last.job?.id === device.job?.id && device.healthy && last.devices.at(-1)?.healthy;
    if (joins && last.job) last.devices.push(device);
    else cut.push({ job: device.job, devices: [device] });
  }
  return cut;
}

/** The levels whose cells the brackets stand for, each once: the innermost one around the devices of each group. */
export function joiningLevels(all: Rack[]): string[] {
  const groups = all.flatMap((rack) => rack.nodes.flatMap((node) => (node.groups.length > 1 ? node.groups : [])));
  const levels = groups.map((group) => (group.name.split(', ').at(-1) ?? '').replace(/ \S+$/, ''));
  return [...new Set(levels)].filter((level) => level !== '');
}

/** Every job that holds a device, by id. */
export function holders(all: Rack[]): Map<string, Holding> {
  const found = new Map<string, Holding>();
  for (const rack of all)
    for (const node of rack.nodes)
      for (const group of node.groups)
        for (const { job } of group.runs) if (job) found.set(job.id, job);
  return found;
}

/** The nodes on which each job holds devices, by the job's id. */
export function nodesOfJobs(all: Rack[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const node of all.flatMap((rack) => rack.nodes)) {
    const jobs = new Set(node.groups.flatMap((group) => group.runs.flatMap((run) => run.job?.id ?? [])));
    for (const job of jobs) found.set(job, [...(found.get(job) ?? []), node.name]);
  }
  return found;
}

/** Steps around the colour circle; enough that neighbours are told apart, and labels say the rest. */
export const HUES = [185, 262, 75, 325, 140, 25, 225, 105, 290, 50, 165, 350] as const;

/** The hues given so far: a job keeps its own for as long as the page is open, whoever comes and goes. */
const painted = new Map<string, number>();
/** Degrees between hues that are told apart at a glance. */
const APART = 40;

/**
 * A hue for each job, by its id, the same from page to page; one too near to those in use gives way to the next.
 * Older jobs choose first, and `known` ones keep what they have, so a new job never repaints an old one.
 */
export function hues(ids: Iterable<string>, known = painted): Map<string, number> {
  const all = [...ids].sort();
  const taken = all.flatMap((id) => known.get(id) ?? []);
  for (const id of all) {
    if (known.has(id)) continue;
    const first = hash(id) % HUES.length;
    const order = HUES.map((_, at) => HUES[(first + at) % HUES.length] ?? 0);
    const free = order.filter((hue) => !taken.includes(hue));
    const chosen = free.find((hue) => taken.every((other) => distance(hue, other) >= APART)) ?? free[0] ?? order[0] ?? 0;
    taken.push(chosen);
    known.set(id, chosen);
  }
  return new Map(all.map((id) => [id, known.get(id) ?? 0]));
}

function distance(a: number, b: number): number {
  const apart = Math.abs(a - b) % 360;
  return Math.min(apart, 360 - apart);
}

function hash(text: string): number {
  let value = 2166136261;
  for (const letter of text) value = Math.imul(value ^ (letter.codePointAt(0) ?? 0), 16777619);
  return value >>> 0;
}
