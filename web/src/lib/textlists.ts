/** Lists of a job file, changed item by item, so that the comments beside the others stay. */

import { isMap, isSeq, parse, type Node } from 'yaml';
import { at, lineBegin, lineEnd, proved, read, remove, write, type Path } from './jobtext';
import type { Sources } from './noderules';

/** An item as YAML: of a plain value, or of each key of a map. */
export type ItemSource = string | Sources;

/** The text with another list at a path. `before` and `after` tell the items apart, one word or line for each. */
export function withItems(text: string, path: Path, before: readonly string[], after: readonly string[], sources: readonly ItemSource[]): string {
  const whole = `[${sources.map(flat).join(', ')}]`;
  const node = at(read(text)!, path);
  if (!isSeq(node) || node.flow || node.items.length !== before.length || before.length === 0) return write(text, path, whole);
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const [gone, made] = [before.length - head - tail, after.length - head - tail];
  let changed: string | null = text;
  for (let index = 0; index < Math.min(gone, made); index += 1) changed = changed && replacedItem(changed, path, head + index, sources[head + index]!);
  for (let index = gone - 1; index >= made; index -= 1) changed = changed && withoutItem(changed, path, head + index);
  for (let index = gone; index < made; index += 1) changed = changed && withItem(changed, path, head + index, sources[head + index]!);
  return changed === null ? write(text, path, whole) : proved(text, changed, path, parse(whole));
}

function flat(source: ItemSource): string {
  return typeof source === 'string' ? source : `{${Object.entries(source).map(([key, value]) => `${key}: ${value}`).join(', ')}}`;
}

function itemsOf(text: string, path: Path): Node[] | null {
  const file = read(text);
  const node = file && at(file, path);
  return isSeq(node) ? (node.items as Node[]) : null;
}

function replacedItem(text: string, path: Path, index: number, source: ItemSource): string | null {
  const item = itemsOf(text, path)?.[index];
  if (!item) return null;
  if (!isMap(item) || typeof source === 'string') return text.slice(0, item.range![0]) + flat(source) + text.slice(item.range![1]);
  const place = [...path, String(index)];
  const there = item.toJSON() as Record<string, unknown>;
  let changed = text;
  for (const [key, value] of Object.entries(source)) if (there[key] !== parse(value)) changed = write(changed, [...place, key], value);
  for (const key of Object.keys(there)) if (!Object.hasOwn(source, key)) changed = remove(changed, [...place, key]);
  return changed;
}

function withoutItem(text: string, path: Path, index: number): string | null {
  const item = itemsOf(text, path)?.[index];
  return item ? text.slice(0, lineBegin(text, item.range![0])) + text.slice(afterItem(text, item)) : null;
}

/** The text with an item behind the one before it, at the same indentation. */
function withItem(text: string, path: Path, index: number, source: ItemSource): string | null {
  const before = itemsOf(text, path)?.[index - 1] ?? itemsOf(text, path)?.[0];
  if (!before) return null;
  const dash = /^\s*- +/.exec(text.slice(lineBegin(text, before.range![0])))?.[0];
  const place = index === 0 ? lineBegin(text, before.range![0]) : afterItem(text, before);
  if (dash === undefined) return null;
  const ending = place > 0 && text[place - 1] !== '\n' ? '\n' : '';
  return `${text.slice(0, place)}${ending}${dash}${flat(source)}\n${text.slice(place)}`;
}

/** Where the line after an item begins. */
function afterItem(text: string, item: Node): number {
  const end = item.range![1];
  return text[end - 1] === '\n' ? end : Math.min(lineEnd(text, end) + 1, text.length);
}
