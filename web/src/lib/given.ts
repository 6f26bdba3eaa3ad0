/** What a queue is given in numbers, as fields: amounts kept for it, limits, and cells that it owns. */

import { type Document, isMap, isSeq } from 'yaml';
import type { Queue } from '../api/types';
import { limited } from './managing';

export const BOUNDS = ['guaranteed', 'limit', 'borrowingLimit', 'lendingLimit', 'userLimit', 'groupLimit'] as const;
export type Bound = (typeof BOUNDS)[number];

export interface CellRow {
  /** Its place in the document in force; null for a new one. */
  at: number | null;
  by: 'level' | 'cellType';
  what: string;
  model: string;
  count: string;
}

/** The fields as typed. */
export interface Given {
  bounds: Readonly<Record<Bound, Readonly<Record<string, string>>>>;
  cells: readonly CellRow[];
  /** Names of pinned cells, separated by commas. */
  pinned: string;
}

export function given(doc: Queue['doc']): Given {
  const cells = (Array.isArray(doc.cells) ? doc.cells : []) as { level?: string; cellType?: string; model?: string; count?: number }[];
  return {
    bounds: Object.fromEntries(BOUNDS.map((bound) => [bound, amounts(doc[bound])])) as Given['bounds'],
    cells: cells.map((cell, at) => ({ at, by: cell.cellType ? 'cellType' : 'level', what: cell.cellType || cell.level || '', model: cell.model ?? '', count: String(cell.count ?? 1) })),
    pinned: (Array.isArray(doc.pinnedCells) ? (doc.pinnedCells as string[]) : []).join(', '),
  };
}

function amounts(said: unknown): Record<string, string> {
  return typeof said === 'object' && said ? Object.fromEntries(Object.entries(said).map(([resource, amount]) => [resource, String(amount)])) : {};
}

export const newCells: CellRow = { at: null, by: 'level', what: 'node', model: '', count: '1' };

/** The resources of which bounds can be set: the common ones, and those that a queue has any of. */
export function boundResources(queues: readonly Queue[]): string[] {
  return limited(...queues.flatMap(({ doc }) => [amounts(doc.deserved), ...Object.values(given(doc).bounds)]));
}

/** Fields that were changed, by queue, beside how they were. */
export type Edits = Readonly<Record<string, { was: Given; now: Given }>>;

/** The edits with new fields of a queue; what is as it was is no edit. */
export function withEdit(edits: Edits, queue: Queue, now: Given): Edits {
  const was = edits[queue.name]?.was ?? given(queue.doc);
  const rest = Object.fromEntries(Object.entries(edits).filter(([name]) => name !== queue.name));
  return JSON.stringify(said(was)) === JSON.stringify(said(now)) ? rest : { ...rest, [queue.name]: { was, now } };
}

/** What the fields say, without empty ones. */
function said({ bounds, cells, pinned }: Given) {
  const kept = BOUNDS.map((bound) => Object.entries(bounds[bound]).flatMap(([resource, amount]) => (amount.trim() ? [[resource, amount.trim()]] : [])).sort());
  return [kept, cells.map(({ at, ...cell }) => [at, cellOf(cell)]), names(pinned)];
}

const names = (text: string): string[] => text.split(',').map((name) => name.trim()).filter(Boolean);
const whole = (text: string): number | string => (/^\d{1,9}$/.test(text.trim()) ? Number(text) : text.trim());

function cellOf({ by, what, model, count }: Omit<CellRow, 'at'>): Record<string, string | number> {
  return { [by]: what.trim(), ...(model.trim() ? { model: model.trim() } : {}), count: whole(count) };
}

/** Write the fields of a queue that differ into its place in a document; comments and the other fields stay. */
export function putGiven(file: Document, place: readonly string[], was: Given, now: Given): void {
  for (const bound of BOUNDS) {
    const resources = new Set([...Object.keys(was.bounds[bound]), ...Object.keys(now.bounds[bound])]);
    for (const resource of resources) {
      const amount = (now.bounds[bound][resource] ?? '').trim();
      if (amount === (was.bounds[bound][resource] ?? '')) continue;
      if (amount) file.setIn(within(file, [...place, bound, resource]), amount);
      else if (file.hasIn([...place, bound, resource])) file.deleteIn([...place, bound, resource]);
    }
    const left = file.getIn([...place, bound], true);
    if (resources.size > 0 && isMap(left) && left.items.length === 0) file.deleteIn([...place, bound]);
  }
  if (JSON.stringify(said({ ...was, bounds: now.bounds, pinned: '' })) !== JSON.stringify(said({ ...now, pinned: '' }))) putCells(file, [...place, 'cells'], was, now.cells);
  if (JSON.stringify(names(was.pinned)) !== JSON.stringify(names(now.pinned))) putList(file, [...place, 'pinnedCells'], names(now.pinned));
}

function putCells(file: Document, path: readonly string[], was: Given, cells: readonly CellRow[]): void {
  const list = file.getIn(path, true);
  if (cells.length === 0 || !isSeq(list) || list.items.length !== was.cells.length) return putList(file, path, cells.map(cellOf));
  const before = [...list.items];
  list.items = cells.map((cell) => {
    const kept = cell.at === null ? undefined : before[cell.at];
    if (!isMap(kept)) return file.createNode(cellOf(cell));
    const next = cellOf(cell);
    const first = given({ cells: [kept.toJSON()] } as unknown as Queue['doc']).cells[0]!;
    for (const key of ['level', 'cellType', 'model', 'count']) {
      if (cellOf(first)[key] === next[key]) continue;
      if (next[key] === undefined) kept.delete(key);
      else kept.set(key, next[key]);
    }
    return kept;
  });
}

function putList(file: Document, path: readonly string[], values: readonly unknown[]): void {
  if (values.length > 0) file.setIn(within(file, path), file.createNode(values));
  else if (file.hasIn(path)) file.deleteIn(path);
}

/** The path, with a map at each step of it. */
function within(file: Document, path: readonly string[]): readonly string[] {
  for (let depth = 1; depth < path.length; depth += 1) if (!isMap(file.getIn(path.slice(0, depth), true))) file.setIn(path.slice(0, depth), file.createNode({}));
  return path;
}
