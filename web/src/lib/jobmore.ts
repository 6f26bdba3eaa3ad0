/** The fields of a job file that a form shows as short texts: read from the file and written into it in place. */

import { isMap, isScalar, isSeq, type Document, type Node, type YAMLMap } from 'yaml';
import { OTHER_NAMES, SHORTHANDS, type Kind, type MoreField } from './jobfields';
import { scalar } from './jobform';
import { at, expanded, read, remove, roleOf, write, type Path } from './jobtext';
import { labelLine, labelSources, taintLine, taintSources, type Sources } from './noderules';
import { containerLine, containerSources, volumeLine, volumeSources } from './podrules';
import { withItems, type ItemSource } from './textlists';

type File = Document.Parsed;
type Json = Record<string, unknown>;

/** What a file says of fields as the form's texts; null where it says more than the text of a field can. */
export function moreOf(text: string, role: string, fields: readonly MoreField[]): (string | null)[] {
  const file = read(text);
  const name = file && roleOf(file, role);
  return fields.map((field) => (file && name ? said(file, name, field) : null));
}

function said(file: File, role: string, field: MoreField): string | null {
  const place = placeOf(file, role, field);
  if (!place) return null;
  if (place.within) return '';
  const node = at(file, place.path);
  if (node === undefined || (isScalar(node) && node.value === null)) return '';
  if (!(isScalar(node) || isMap(node) || isSeq(node)) || node.anchor) return null;
  if (isScalar(node)) {
    const word = String(node.source ?? node.value);
    if (place.word?.[0] === word) return place.word[1];
    if (field.kind === 'words' || field.kind === 'parts') return typeof node.value === 'string' && oneWord(word) ? word : null;
    return field.kind === 'text' || field.kind === 'array' || field.kind === 'choice' ? (word.includes('\n') ? null : word) : null;
  }
  return shown(field, node.toJS(file));
}

/** The text with another value of a field; null where the value cannot be written yet. */
export function moreEdited(text: string, role: string, field: MoreField, value: string): string | null {
  const file = read(text);
  const name = file && roleOf(file, role);
  const place = file && name && placeOf(file, name, field);
  if (!place) return null;
  const { path, within, word, written } = place;
  const trimmed = value.trim();
  if (!trimmed) return within || !file.hasIn(path) ? text : removed(text, path, field.role ? 2 : 0);
  const begun = within ? expanded(text, within.path, within.child, within.word) : text;
  if (field.kind === 'pairs' || field.kind === 'numbers') return withPairs(begun, path, trimmed, field.kind === 'numbers');
  if (word && written && trimmed === word[1]) return write(begun, path, word[0]);
  const list = itemsOf(field, trimmed);
  if (list) {
    const before = moreOf(begun, role, [field])[0];
    return withItems(begun, path, before ? itemsOf(field, before)!.words : [], list.words, list.sources);
  }
  const source = sourceOf(field.kind, trimmed);
  return source === null ? null : write(begun, path, source);
}

interface Place {
  path: Path;
  /** The word that stands for a value here, and the value. */
  word?: readonly [string, string];
  written?: boolean;
  /** A short value above, which is written out before the field can be. */
  within?: { path: Path; child: string; word?: readonly [string, string] };
}

/** Where a field stands or would stand; null where its place has a value that a form cannot change. */
function placeOf(file: File, role: string, field: MoreField): Place | null {
  const base = field.role ? ['roles', role] : [];
  const path = [...base, ...field.path];
  const other = OTHER_NAMES[field.path.join('/')];
  if (other !== undefined && file.hasIn([...path.slice(0, -1), other])) return null;
  for (let length = 1; length < field.path.length; length += 1) {
    const above = field.path.slice(0, length);
    const node = at(file, [...base, ...above]);
    if (node === undefined || (isScalar(node) && node.value === null)) return { path };
    if (!isScalar(node) && !isMap(node) && !isSeq(node)) return null;
    if (node.anchor) return null;
    if (isMap(node)) continue;
    const short = SHORTHANDS[above.join('/')];
    if (!short) return null;
    const { child, word, written } = short;
    if (child === field.path[length] && length === field.path.length - 1) return { path: [...base, ...above], word, written };
    return { path, within: { path: [...base, ...above], child, word } };
  }
  return { path };
}

/** The text without a value, and without the maps that held nothing else. */
function removed(text: string, path: Path, least: number): string {
  const file = read(text)!;
  let gone = path;
  while (gone.length > least + 1 && (at(file, gone.slice(0, -1)) as YAMLMap<Node, Node>).items.length === 1) gone = gone.slice(0, -1);
  return remove(text, gone);
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

const plain = (value: unknown): value is string | number | boolean => ['string', 'number', 'boolean'].includes(typeof value);
const oneWord = (value: unknown): value is string => typeof value === 'string' && /^\S+$/.test(value);

const LINE_OF: Partial<Record<Kind, (item: Json) => string | null>> = {
  inputs: ({ uri, path, ...others }) => (oneWord(uri) && oneWord(path) && Object.keys(others).length === 0 ? `${uri} ${path}` : null),
  outputs: ({ uri, path, ...others }) => (oneWord(uri) && oneWord(path) && Object.keys(others).length === 0 ? `${path} ${uri}` : null),
  labels: labelLine,
  taints: taintLine,
  volumes: volumeLine,
  containers: containerLine,
};

function shown({ kind, parts }: MoreField, value: unknown): string | null {
  if (parts) return Array.isArray(value) ? partsShown(value, parts) : null;
  if (kind === 'words') return Array.isArray(value) && value.every((each) => oneWord(each) || Number.isInteger(each)) ? value.join(' ') : null;
  const lineOf = LINE_OF[kind];
  if (lineOf) {
    const lines = Array.isArray(value) ? value.map((item: unknown) => (item && typeof item === 'object' ? lineOf(item as Json) : null)) : [null];
    return lines.includes(null) ? null : lines.join('\n');
  }
  if (Array.isArray(value) || kind === 'text' || kind === 'choice') return null;
  const entries = Object.entries(value as Json);
  if (kind === 'array') {
    const { size, maxParallel, ...others } = value as Json;
    return plain(size) && plain(maxParallel) && Object.keys(others).length === 0 ? `${size}/${maxParallel}` : null;
  }
  return entries.every(([, each]) => plain(each) && !String(each).includes('\n')) ? entries.map(([key, each]) => `${key}=${String(each)}`).join('\n') : null;
}

/** The first part of a word; `=` ends it only where there is a third. */
const isHead = (value: unknown, third: string | undefined): value is string => oneWord(value) && !value.includes(':') && (third === undefined || !value.includes('='));

function partsShown(items: readonly unknown[], [first, second, third]: NonNullable<MoreField['parts']>): string | null {
  const words = items.map((item) => {
    if (typeof item === 'string') return isHead(item, third) ? item : null;
    const { [first]: head, [second]: tail, ...others } = (item ?? {}) as Json;
    const { [third ?? '']: end, ...more } = others;
    if (!isHead(head, third) || Object.keys(more).length > 0) return null;
    const ends = [[':', tail], ['=', end]].filter(([, value]) => value !== undefined);
    return ends.every(([, value]) => plain(value) && /^\S+$/.test(String(value))) ? head + ends.map(([mark, value]) => `${mark}${value}`).join('') : null;
  });
  return words.includes(null) ? null : words.join(' ');
}

function sourceOf(kind: Kind, value: string): string | null {
  if (kind === 'choice') return value === 'true' || value === 'false' ? value : scalar(value);
  if (kind === 'text') return /^-?\d+$/.test(value) ? value : scalar(value);
  const [, size, parallel] = kind === 'array' ? (/^(\d+)(?:\/(\d+))?$/.exec(value) ?? []) : [];
  if (size === undefined) return null;
  return parallel === undefined ? size : `{size: ${size}, maxParallel: ${parallel}}`;
}

const SOURCES_OF: Partial<Record<Kind, (line: string) => Sources | null>> = {
  inputs: (line) => twoWords(line, (uri, path) => ({ uri: JSON.stringify(uri), path: scalar(path) })),
  outputs: (line) => twoWords(line, (path, uri) => ({ path: scalar(path), uri: JSON.stringify(uri) })),
  labels: labelSources,
  taints: taintSources,
  volumes: volumeSources,
  containers: containerSources,
};

function twoWords(line: string, made: (first: string, second: string) => Sources): Sources | null {
  const [first, second, ...more] = line.split(/\s+/);
  return first && second && more.length === 0 ? made(first, second) : null;
}

/** A word as its parts: `a`, `a:b`, and of three also `a=c` and `a:b=c`. */
const partsOf = (word: string, third: string | undefined) => (third === undefined ? /^([^:]+)(?::(.+))?$/ : /^([^:=]+)(?::([^=]+))?(?:=([^=]+))?$/).exec(word);

function wordSource(word: string, parts: MoreField['parts']): ItemSource {
  const [, head, tail, end] = (parts && partsOf(word, parts[2])) ?? [];
  if (!parts || head === undefined || (tail === undefined && end === undefined)) return scalar(word);
  const source = (value: string) => (/^\d+$/.test(value) ? value : scalar(value));
  return { [parts[0]]: scalar(head), ...(tail !== undefined && { [parts[1]]: source(tail) }), ...(end !== undefined && { [parts[2]!]: source(end) }) };
}

/** The items of a text that stands for a list, with their YAML; null for other texts, and for lines that are none yet. */
function itemsOf({ kind, parts }: MoreField, value: string): { words: string[]; sources: ItemSource[] } | null {
  if (kind === 'words' || kind === 'parts') {
    const words = value.split(/\s+/);
    return words.every((word) => !parts || partsOf(word, parts[2])) ? { words, sources: words.map((word) => wordSource(word, parts)) } : null;
  }
  const sourcesOf = SOURCES_OF[kind];
  if (!sourcesOf) return null;
  const words = value.split('\n').map((line) => line.trim()).filter(Boolean);
  const sources = words.map(sourcesOf);
  return sources.includes(null) ? null : { words, sources: sources as Sources[] };
}

const NUMBER = /^-?\d+(\.\d+)?$/;

/** Changes one variable after the other, so that the others keep their comments. */
function withPairs(text: string, path: Path, value: string, numbers: boolean): string | null {
  const wanted = new Map<string, string>();
  for (const line of value.split('\n').filter((each) => each.trim())) {
    const [, name, content] = /^\s*([^\s=]+)=(.*)$/.exec(line) ?? [];
    if (name === undefined || (numbers && !NUMBER.test(content!.trim()))) return null;
    wanted.set(name, numbers ? content!.trim() : content!);
  }
  const file = read(text)!;
  const there = at(file, path);
  const known = (isMap(there) ? there.toJS(file) : {}) as Json;
  let changed = text;
  for (const [name, content] of wanted)
    if (!Object.hasOwn(known, name) || String(known[name]) !== content) changed = write(changed, [...path, name], numbers ? content : JSON.stringify(content), undefined, true);
  for (const name of Object.keys(known)) if (!wanted.has(name)) changed = remove(changed, [...path, name]);
  return changed;
}
