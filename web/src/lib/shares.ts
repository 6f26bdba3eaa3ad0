/** What a queue is owed and holds, as amounts, words and the parts of a bar. */

import type { LineEntry, QueueStanding } from '../api/types';
import { counts } from '../texts/english/counts';
import { shares as texts } from '../texts/english/shares';
import { counted, fill, number } from '../texts/fill';
import { bytes, cpus } from './format';

/** What is a queue's own: what it deserves, and the devices of the cells that it owns. */
export function own(queue: QueueStanding, resource: string): number {
  const deserved = queue.deserved[resource] ?? 0;
  return deserved + (resource === 'devices' ? queue.ownedDevices : 0);
}

/** An amount as people write it; devices to the thousandth, as queues count them. */
export function amount(resource: string, value: number): string {
  if (resource === 'cpu') return cpus(value);
  if (resource === 'memory') return bytes(value);
  return number(value, { maximumFractionDigits: 3 });
}

/** Every resource that some queue speaks of; devices first. */
export function resources(queues: readonly QueueStanding[]): string[] {
  const found = new Set(['devices']);
  for (const queue of queues)
    for (const shares of [queue.deserved, queue.limit, queue.used, queue.wanted]) for (const name of Object.keys(shares)) found.add(name);
  return [...found].sort((a, b) => Number(b.startsWith('devices')) - Number(a.startsWith('devices')) || a.localeCompare(b));
}

export interface Bar {
  /** In the order in which they are drawn, each a part of the scale from 0 to 1. */
  own: number;
  borrowed: number;
  idle: number;
  /** From 0: where the limit and the fair share are; null where there is none. */
  limit: number | null;
  fair: number | null;
  /** From 0: how much of its own is never lent. */
  guaranteed: number;
}

/** The largest amount that any bar of these queues has to show. */
export function scaleOf(queues: readonly QueueStanding[], resource: string): number {
  return Math.max(0, ...queues.map((queue) => Math.max(extent(queue, resource), queue.limit[resource] ?? 0, queue.fair[resource] ?? 0)));
}

function extent(queue: QueueStanding, resource: string): number {
  return Math.max(queue.used[resource] ?? 0, own(queue, resource) + (queue.borrowed[resource] ?? 0));
}

export function bar(queue: QueueStanding, resource: string, scale: number): Bar {
  const part = (value: number) => (scale > 0 ? value / scale : 0);
  const borrowed = queue.borrowed[resource] ?? 0;
  const within = Math.max(0, (queue.used[resource] ?? 0) - borrowed);
  const limit = queue.limit[resource];
  const fair = queue.fair[resource];
  return {
    own: part(within),
    borrowed: part(borrowed),
    idle: part(Math.max(0, own(queue, resource) - within)),
    limit: limit === undefined ? null : part(limit),
    fair: fair === undefined ? null : part(fair),
    guaranteed: part(queue.guaranteed[resource] ?? 0),
  };
}

/** A bar in words, for those who do not see it. */
export function told(queue: QueueStanding, resource: string): string {
  const say = (value: number) => amount(resource, value);
  const words = [fill(texts.used, { amount: say(queue.used[resource] ?? 0) })];
  if (queue.borrowed[resource]) words.push(fill(texts.borrowed, { amount: say(queue.borrowed[resource]) }));
  if (own(queue, resource)) words.push(fill(texts.own, { amount: say(own(queue, resource)) }));
  if (queue.lent[resource]) words.push(fill(texts.lent, { amount: say(queue.lent[resource]) }));
  if (queue.limit[resource] !== undefined) words.push(fill(texts.limit, { amount: say(queue.limit[resource]) }));
  return words.join(', ');
}

/** What a waiting gang needs to begin, in few words. */
export function wants(entry: LineEntry): string {
  const { devices, model } = entry;
  const needed = model ? counted(texts.modelDevices, devices, { model }) : counted(counts.devices, devices);
  const what = devices > 0 ? needed : fill(texts.processors, { amount: cpus(entry.cpuMillis) });
  const tasks = fill(texts.inTasks, { what, tasks: counted(counts.tasks, entry.tasks) });
  const within = entry.level ? fill(texts.inOne, { what: tasks, level: entry.level }) : tasks;
  return entry.grows ? fill(texts.more, { what: within }) : within;
}
