/** Shares of queues that are moved by hand: what there is to move, dividers between neighbours, and the documents that say it. */

import { isMap, parseDocument } from 'yaml';
import type { Queue, Top } from '../api/types';
import { queues as texts } from '../texts/english/queues';
import { fill, number } from '../texts/fill';
import { type Edits, putGiven } from './given';

/** What is divided among queues: `weight`, or the resource whose deserved amount it is. Values are in its unit (`unitOf`). */
export interface Measure {
  key: string;
  /** By how much a press of an arrow key moves a divider. */
  step: number;
}

export const WEIGHT: Measure = { key: 'weight', step: 0.1 };
const LEAST_WEIGHT = 0.1;
const POWERS: Record<string, number> = { '': 0, Ki: 1, Mi: 2, Gi: 3, Ti: 4, Pi: 5, Ei: 6 };

export function measure(key: string): Measure {
  if (key === WEIGHT.key) return WEIGHT;
  return { key, step: 1 };
}

/** A measure in words. */
export const wordOf = ({ key }: Measure): string => (key === WEIGHT.key ? texts.weight : fill(texts.deservedOf, { resource: key }));

/** The unit of a measure's values; weights have none. */
export function unitOf({ key }: Measure): string {
  if (key === WEIGHT.key) return '';
  return key === 'cpu' || key === 'memory' ? texts.units[key] : texts.units.devices;
}

/** What can be moved: devices, every other resource that some queue deserves, and weights. */
export function measures(queues: readonly Queue[]): Measure[] {
  const named = queues.flatMap((queue) => Object.keys(amounts(queue, 'deserved')));
  return [...[...new Set(['devices', ...named.sort()])].map(measure), WEIGHT];
}

function amounts(queue: Queue, field: string): Record<string, string> {
  const found = queue.doc[field];
  return typeof found === 'object' && found ? (found as Record<string, string>) : {};
}

/** An amount of a document in the unit of its resource. */
export function read(resource: string, text: string): number {
  if (resource === 'cpu') return text.endsWith('m') ? Number(text.slice(0, -1)) / 1000 : Number(text);
  if (resource !== 'memory') return Number(text);
  const [, digits = '0', suffix = ''] = /^([\d.]+)([A-Z]i)?$/.exec(text) ?? [];
  return (Number(digits) * 1024 ** (POWERS[suffix] ?? 0)) / 1024 ** 3;
}

/** A value as a document has it. */
export function written({ key }: Measure, value: number): string | number {
  if (key === WEIGHT.key) return value;
  if (key === 'cpu' && !Number.isInteger(value)) return `${Math.round(value * 1000)}m`;
  if (key === 'memory') return Number.isInteger(value) ? `${value}Gi` : `${Math.round(value * 1024)}Mi`;
  return String(value);
}

/** What a queue has now; what is kept for it is its own too. */
export function inForce(queue: Queue, { key }: Measure): number {
  if (key === WEIGHT.key) return typeof queue.doc.weight === 'number' ? queue.doc.weight : 1;
  const own = amounts(queue, 'deserved')[key] ?? amounts(queue, 'guaranteed')[key];
  return own === undefined ? 0 : rounded(read(key, own));
}

/** The least that a divider leaves a queue. */
export function least(queue: Queue, { key }: Measure): number {
  if (key === WEIGHT.key) return Math.min(LEAST_WEIGHT, inForce(queue, WEIGHT));
  const kept = amounts(queue, 'guaranteed')[key];
  return kept === undefined ? 0 : rounded(read(key, kept));
}

const rounded = (value: number) => Math.round(value * 1000) / 1000;
export const shown = (value: number) => number(value, { maximumFractionDigits: 3 });

/** Queues that divide one amount: those below the same queue, or at the top. */
export interface Siblings {
  parent: string;
  queues: Queue[];
  /** What they divide; null where that has no bound, or none that is known. */
  total: number | null;
}

export function siblings(queues: readonly Queue[], of: Measure, top: Top | undefined, now: (queue: Queue) => number): Siblings[] {
  const known = new Map(queues.map((queue) => [queue.name, queue]));
  const groups = new Map<string, Queue[]>();
  for (const queue of queues) {
    const parent = typeof queue.doc.parent === 'string' && known.has(queue.doc.parent) ? queue.doc.parent : '';
    groups.set(parent, [...(groups.get(parent) ?? []), queue]);
  }
  return [...groups].map(([parent, within]) => {
    const above = known.get(parent);
    if (of.key === WEIGHT.key) return { parent, queues: within, total: null };
    if (above) return { parent, queues: within, total: now(above) || null };
    const cells = of.key === 'devices' ? within.reduce((sum, queue) => sum + (queue.standing?.ownedDevices ?? 0), 0) : 0;
    const there = capacity(of.key, top);
    return { parent, queues: within, total: there === null ? null : Math.max(0, there - cells) };
  });
}

function capacity(resource: string, top: Top | undefined): number | null {
  if (!top) return null;
  if (resource === 'devices') return top.total.devices;
  if (resource === 'cpu') return top.total.cpuMillis / 1000;
  return resource === 'memory' ? Math.floor(top.total.memoryBytes / 1024 ** 3) : null;
}

/** Values after the divider behind the one at `at` moved by `by`: what one gains its neighbour loses, down to its least. */
export function moved(values: readonly number[], floors: readonly number[], at: number, by: number): number[] {
  const [left = 0, right = 0] = [values[at], values[at + 1]];
  const [low = 0, high = 0] = [floors[at], floors[at + 1]];
  const gain = Math.max(Math.min(0, low - left), Math.min(by, Math.max(0, right - high)));
  return values.map((value, each) => (each === at ? rounded(left + gain) : each === at + 1 ? rounded(right - gain) : value));
}

/** Values that were moved, by measure and queue. */
export type Moves = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** The moves with new values of one measure; a value that is in force already is no move. */
export function withMoves(moves: Moves, of: Measure, values: Readonly<Record<string, number>>, queues: readonly Queue[]): Moves {
  const before = new Map(queues.map((queue) => [queue.name, inForce(queue, of)]));
  const kept = Object.entries({ ...moves[of.key], ...values }).filter(([name, value]) => before.has(name) && before.get(name) !== value);
  const next = { ...moves, [of.key]: Object.fromEntries(kept) };
  return Object.fromEntries(Object.entries(next).filter(([, each]) => Object.keys(each).length > 0));
}

/** The names of the queues that are moved in any measure. */
export const movedQueues = (moves: Moves): string[] => [...new Set(Object.values(moves).flatMap(Object.keys))].sort();

/** The moves without those of some queues. */
export function withoutQueues(moves: Moves, queues: readonly string[]): Moves {
  const left = Object.entries(moves).map(([key, values]) => [key, Object.fromEntries(Object.entries(values).filter(([name]) => !queues.includes(name)))] as const);
  return Object.fromEntries(left.filter(([, values]) => Object.keys(values).length > 0));
}

/** The text of a document in which queues have what they were moved to; `below` is where a queue stands in it. */
export function documentWith(text: string, moves: Moves, below: (queue: string) => readonly string[] | null, edits: Edits = {}): string {
  const file = parseDocument(text, { logLevel: 'error' });
  for (const [key, values] of Object.entries(moves))
    for (const [queue, value] of Object.entries(values)) {
      const place = below(queue);
      if (!place) continue;
      const path = key === WEIGHT.key ? [...place, 'weight'] : [...place, 'deserved', key];
      for (let depth = 1; depth < path.length; depth += 1)
        if (!isMap(file.getIn(path.slice(0, depth), true))) file.setIn(path.slice(0, depth), file.createNode({}));
      file.setIn(path, written(measure(key), value));
    }
  for (const [queue, { was, now }] of Object.entries(edits)) {
    const place = below(queue);
    if (place) putGiven(file, place, was, now);
  }
  return file.toString({ lineWidth: 0, flowCollectionPadding: false });
}
