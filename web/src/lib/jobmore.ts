/** The fields of a job file that a form shows as short lines of text: read from the file and written into it in place. */

import { isMap, isScalar, isSeq } from 'yaml';
import { scalar } from './jobform';
import { at, read, remove, roleOf, write, type Path } from './jobtext';

type Kind = 'text' | 'words' | 'pairs' | 'array' | 'inputs' | 'outputs';

export interface MoreField {
  key: string;
  label: string;
  hint: string;
  kind: Kind;
  /** Whether it is a field of the role. */
  role?: boolean;
}

export const MORE: readonly MoreField[] = [
  { key: 'env', label: 'Environment of all roles', hint: 'NAME=value, one a line', kind: 'pairs' },
  { key: 'env', label: 'Environment of this role', hint: 'NAME=value, one a line', kind: 'pairs', role: true },
  { key: 'secrets', label: 'Secrets', hint: 'VARIABLE=stored secret, one a line', kind: 'pairs' },
  { key: 'nodeSelector', label: 'Labels of its nodes', hint: 'label=value, one a line', kind: 'pairs' },
  { key: 'inputs', label: 'Data in', hint: 'URI and path, one a line', kind: 'inputs' },
  { key: 'outputs', label: 'Data out', hint: 'path and URI, one a line', kind: 'outputs' },
  { key: 'storages', label: 'Storages', hint: 'names with blanks between', kind: 'words' },
  { key: 'ports', label: 'Ports of this role', hint: 'names, such as http', kind: 'words', role: true },
  { key: 'after', label: 'After these jobs succeeded', hint: 'names with blanks between', kind: 'words' },
  { key: 'tags', label: 'Tags', hint: 'words with blanks between', kind: 'words' },
  { key: 'array', label: 'Array of jobs', hint: '100, or 100/10: ten at a time', kind: 'array' },
  { key: 'retry', label: 'Retries after failures', hint: '0; -1 is no limit', kind: 'text' },
  { key: 'maxDuration', label: 'Longest run', hint: 'no limit, or 2h', kind: 'text' },
  { key: 'deadline', label: 'Should be over within', hint: 'none, or 8h', kind: 'text' },
  { key: 'idle', label: 'Suspend when idle for', hint: 'never, or 1h', kind: 'text' },
];

/** Two keys that mean one thing: where the file has the other, it is changed by hand. */
const OTHER_NAMES: Record<string, string> = { retry: 'retryPolicy' };

/** What a file says of a field as the form's text; null where it says more than that text can. */
export function moreOf(text: string, role: string, field: MoreField): string | null {
  const file = read(text);
  const name = file && roleOf(file, role);
  if (!file || !name || file.has(OTHER_NAMES[field.key] ?? '')) return null;
  const node = at(file, pathOf(field, name));
  if (node === undefined || (isScalar(node) && node.value === null)) return '';
  if (isScalar(node)) return node.anchor || (field.kind !== 'text' && field.kind !== 'array') ? null : String(node.source ?? node.value);
  if (!isMap(node) && !isSeq(node)) return null;
  if (node.anchor) return null;
  return shown(field.kind, node.toJS(file));
}

/** The text with another value of a field; null where the value cannot be written yet. */
export function moreEdited(text: string, role: string, field: MoreField, value: string): string | null {
  const file = read(text);
  const name = file && roleOf(file, role);
  if (!file || !name) return null;
  const path = pathOf(field, name);
  const trimmed = value.trim();
  if (!trimmed) return file.hasIn(path) ? remove(text, path) : text;
  if (field.kind === 'pairs') return withPairs(text, path, trimmed);
  const source = sourceOf(field.kind, trimmed);
  return source === null ? null : write(text, path, source);
}

/** The names of a file's roles, in order; none where a form cannot change it. */
export function rolesOf(text: string): string[] {
  const file = read(text);
  if (!file || !roleOf(file)) return [];
  return Object.keys((file.toJS() as { roles: object }).roles);
}

export function withRole(text: string, name: string): string {
  return write(text, ['roles', name], '{resources: {cpu: 1}, command: "true"}');
}

export function withoutRole(text: string, name: string): string {
  return remove(text, ['roles', name]);
}

function pathOf(field: MoreField, role: string): Path {
  return field.role ? ['roles', role, field.key] : [field.key];
}

type Json = Record<string, unknown>;
const plain = (value: unknown): value is string | number | boolean => ['string', 'number', 'boolean'].includes(typeof value);
const oneWord = (value: unknown): value is string => typeof value === 'string' && /^\S+$/.test(value);

function shown(kind: Kind, value: unknown): string | null {
  if (kind === 'words') return Array.isArray(value) && value.every(oneWord) ? value.join(' ') : null;
  if (kind === 'inputs' || kind === 'outputs') return Array.isArray(value) ? dataLines(kind, value as Json[]) : null;
  if (Array.isArray(value) || kind === 'text') return null;
  const entries = Object.entries(value as Json);
  if (kind === 'array') {
    const { size, maxParallel, ...others } = value as Json;
    return plain(size) && plain(maxParallel) && Object.keys(others).length === 0 ? `${size}/${maxParallel}` : null;
  }
  return entries.every(([, each]) => plain(each) && !String(each).includes('\n')) ? entries.map(([key, each]) => `${key}=${String(each)}`).join('\n') : null;
}

function dataLines(kind: 'inputs' | 'outputs', items: Json[]): string | null {
  const lines = items.map((each) => {
    const { uri, path, ...others } = each ?? {};
    if (!oneWord(uri) || !oneWord(path) || Object.keys(others).length > 0) return null;
    return kind === 'inputs' ? `${uri} ${path}` : `${path} ${uri}`;
  });
  return lines.includes(null) ? null : lines.join('\n');
}

function sourceOf(kind: Kind, value: string): string | null {
  if (kind === 'text') return /^-?\d+$/.test(value) ? value : scalar(value);
  if (kind === 'words') return `[${value.split(/\s+/).map(scalar).join(', ')}]`;
  if (kind === 'array') {
    const [, size, parallel] = /^(\d+)(?:\/(\d+))?$/.exec(value) ?? [];
    if (size === undefined) return null;
    return parallel === undefined ? size : `{size: ${size}, maxParallel: ${parallel}}`;
  }
  const lines = value.split('\n').map((line) => line.trim().split(/\s+/)).filter(([first]) => first);
  if (lines.some((words) => words.length !== 2)) return null;
  const items = lines.map(([first, second]) => (kind === 'inputs' ? `{uri: ${JSON.stringify(first)}, path: ${scalar(second!)}}` : `{path: ${scalar(first!)}, uri: ${JSON.stringify(second)}}`));
  return `[${items.join(', ')}]`;
}

/** Changes one variable after the other, so that the others keep their comments. */
function withPairs(text: string, path: Path, value: string): string | null {
  const wanted = new Map<string, string>();
  for (const line of value.split('\n').filter((each) => each.trim())) {
    const [, name, said] = /^\s*([^\s=]+)=(.*)$/.exec(line) ?? [];
    if (name === undefined) return null;
    wanted.set(name, said!);
  }
  const file = read(text)!;
  const there = at(file, path);
  const known = (isMap(there) ? there.toJS(file) : {}) as Json;
  let changed = text;
  for (const [name, said] of wanted)
    if (!Object.hasOwn(known, name) || String(known[name]) !== said) changed = write(changed, [...path, name], JSON.stringify(said));
  for (const name of Object.keys(known)) if (!wanted.has(name)) changed = remove(changed, [...path, name]);
  return changed;
}
