/** A short job file that somebody wrote, read and changed by the form: what it does not know keeps its place and words. */

import { isAlias, isMap, isScalar, isSeq, parse, parseDocument, type Document, type Node, type Pair, type YAMLMap } from 'yaml';
import type { JobDocument } from '../api/types';
import { fromDocument, quantity, replicas, same, scalar, toYaml, type JobForm } from './jobform';

export type Path = readonly string[];
type Field = keyof JobForm;

const ORDER = [
  ...['name', 'framework', 'queue', 'priority', 'preemptible', 'gang', 'image', 'workingDir', 'parameters', 'after', 'array', 'tags', 'labels', 'annotations'],
  ...['retry', 'maxDuration', 'deadline', 'idle', 'hangAfter', 'badHardware', 'exitTable', 'barrier', 'countedRole', 'checkpoint', 'report', 'profile'],
  ...['compileCache', 'preflight', 'notifications', 'pinnedCell', 'lazyPreemption', 'speeds', 'nodeSelector', 'nodes', 'sharing', 'network', 'storages'],
  ...['secrets', 'inputs', 'outputs', 'replicas', 'resources', 'cpu', 'memory', 'disk', 'devices', 'other', 'shm', 'processesPerReplica', 'maxTaskSeconds'],
  ...['completion', 'command', 'ports', 'env', 'count', 'model', 'roles', 'topology', 'required', 'preferred'],
];
/** What only files of other languages, and canonical ones, have at their top. */
const OTHERS = ['apiVersion', 'kind', 'spec', 'protocolVersion', 'jobName', 'document'];

/** The fields of a short job file; `document` is what the server read in it. None where the form could not show them. */
export function formOf(text: string, document: JobDocument, wanted = ''): JobForm | null {
  const file = read(text);
  const role = file && roleOf(file, wanted);
  if (!file || !role) return null;
  const form = fromDocument(alone(document, role), role);
  const command = at(file, ['roles', role, 'command']);
  if (!form || !isScalar(command) || typeof command.value !== 'string') return null;
  if (!file.has('image')) form.image = ''; // the document has the role's own
  for (const field of Object.keys(form) as Field[]) {
    const node = at(file, pathOf(file, role, field));
    if (isScalar(node) && node.anchor) return null; // others repeat it, who would change with it
    if (isScalar(node) && node.value !== null) form[field] = written(node.value, node.source);
  }
  const range = at(file, ['roles', role, 'replicas']);
  if (!isMap(range)) return form;
  const { min, max, ...others } = range.toJS(file) as Record<string, unknown>;
  if (!Number.isInteger(min) || !Number.isInteger(max) || Object.keys(others).length > 0 || range.anchor) return null;
  return { ...form, replicas: `${String(min)}-${String(max)}` };
}

/** A document with one of its roles alone, one replica of it: how many there are the file says. */
function alone(document: JobDocument, role: string): JobDocument {
  const { spec } = document;
  const replicaSpec = { ...spec.replicaSpec, role, replicas: 1, minReplicas: 1, maxReplicas: 1 };
  return { ...document, spec: { ...spec, roles: spec.roles.filter((each) => each.name === role), replicaSpec } };
}

/** Whether a form can change a text: `unread` where it is no file that can be read, `more` where it is one of other words. */
export function formable(text: string): 'yes' | 'more' | 'unread' {
  const file = read(text);
  if (!file) return 'unread';
  return roleOf(file) ? 'yes' : 'more';
}

/** The text with what differs between two forms of a role; null where it is no file that a form can change. */
export function edited(text: string, before: JobForm, after: JobForm, role = ''): string | null {
  if (text === toYaml(before)) return toYaml(after);
  let changed: string | null = text;
  for (const field of Object.keys(after) as Field[])
    if (changed !== null && after[field] !== before[field]) changed = setField(changed, field, after[field], role);
  return changed;
}

/** What a job file says of its code, as JSON; "" when it says nothing. */
export function codeOf(text: string): string {
  const file = read(text);
  return JSON.stringify((file?.toJS() as Record<string, unknown> | undefined)?.code ?? '');
}

export function read(text: string): Document.Parsed | null {
  try {
    const file = parseDocument(text, { logLevel: 'error' });
    file.toJS(); // refuses aliases that explode
    return file.errors.length === 0 && isMap(file.contents) ? file : null;
  } catch {
    return null;
  }
}

/** The named role of a short job file, or else its first. */
export function roleOf(file: Document.Parsed, wanted = ''): string | null {
  if (OTHERS.some((key) => file.has(key))) return null;
  const roles = file.get('roles', true);
  if (!isMap(roles) || roles.items.length === 0) return null;
  if (!roles.items.every(({ key, value }) => isScalar(key) && typeof key.value === 'string' && isMap(value))) return null;
  const names = roles.items.map(({ key }) => (key as { value: string }).value);
  return names.includes(wanted) ? wanted : names[0]!;
}

export function at(file: Document.Parsed, path: Path): unknown {
  return file.getIn(path, true);
}

function written(value: unknown, source: string | undefined): string {
  return (typeof value === 'string' ? value : (source ?? String(value))).replace(/\n+$/, '');
}

/** Where a file says a field, or would. */
function pathOf(file: Document.Parsed, role: string, field: Field): Path {
  const own = ['roles', role];
  if (field === 'queue' && file.has('virtualCluster')) return ['virtualCluster'];
  if (field === 'replicas' || field === 'command') return [...own, field];
  if (field === 'cpu' || field === 'memory') return [...own, 'resources', field];
  if (field === 'devices') return isMap(at(file, [...own, 'resources', 'devices'])) ? [...own, 'resources', 'devices', 'count'] : [...own, 'resources', 'devices'];
  if (field === 'model') return [...own, 'resources', 'devices', 'model'];
  if (field === 'required') return isMap(at(file, ['topology'])) || !file.has('topology') ? ['topology', 'required'] : ['topology'];
  if (field === 'preferred') return ['topology', 'preferred'];
  return [field];
}

function setField(text: string, field: Field, value: string, wanted: string): string | null {
  const file = read(text);
  const role = file && roleOf(file, wanted);
  if (!file || !role) return null;
  const path = pathOf(file, role, field);
  const above = path.slice(0, -1);
  const node = at(file, above);
  if (field === 'command') return write(text, path, scalar(value), value);
  if (field === 'replicas' && value) return write(text, path, replicas(value));
  if (value === '' && field !== 'name' && field !== 'cpu') return file.hasIn(path) ? remove(text, path) : text;
  const source = ['devices', 'cpu', 'memory'].includes(field) ? quantity(value || '0') : field === 'priority' && /^-?\d+$/.test(value) ? value : scalar(value);
  if (path.length > 1 && (isScalar(node) || isAlias(node)) && (field === 'model' || field === 'preferred')) {
    const kept = text.slice(node.range![0], node.range![1]);
    return write(text, above, `{${field === 'model' ? 'count' : 'required'}: ${kept}, ${field}: ${source}}`);
  }
  return write(text, path, source);
}

/** The text with YAML in the place of a path; `lines`: a text that may be written as a block; `own`: the key is a name of somebody's own. */
export function write(text: string, path: Path, source: string, lines?: string, own = false): string {
  const file = read(text)!;
  const value: unknown = lines ?? parse(source);
  const node = at(file, path) as Node | undefined;
  const pair = pairAt(file, path);
  let next: string;
  if (pair) next = node?.range && text.slice(...span(node)).trim() ? replaced(text, pair, node, source, lines) : text;
  else {
    const map = path.length > 1 ? at(file, path.slice(0, -1)) : file.contents;
    if (!isMap(map)) return write(text, path.slice(0, -1), `{${path[path.length - 1]}: ${source}}`);
    next = inserted(text, map, path[path.length - 1]!, source, lines, own);
  }
  return proved(text, next, path, value);
}

/** The text with `{child: …}` in the place of the short value of a path, which keeps its words and comments. */
export function expanded(text: string, path: Path, child: string, word?: readonly [string, string]): string {
  const file = read(text)!;
  const node = at(file, path) as Node;
  const [begin, end] = span(node);
  const value: unknown = node.toJS(file);
  const long = word && value === word[0] ? word[1] : undefined;
  const said = { [child]: long === undefined ? value : (parse(long) as unknown) };
  if (!isSeq(node) || node.flow) {
    const kept = long ?? text.slice(begin, end);
    return proved(text, `${text.slice(0, begin)}{${child}: ${kept}}${text.slice(end)}`, path, said);
  }
  const key = pairAt(file, path)!.key.range![0];
  const column = ' '.repeat(key - lineBegin(text, key) + 2);
  const first = lineBegin(text, begin);
  const lines = text.slice(first, end).replace(/^(?=.)/gm, '  ');
  return proved(text, `${text.slice(0, first)}${column}${child}:\n${lines}${text.slice(end)}`, path, said);
}

export function remove(text: string, path: Path): string {
  const file = read(text)!;
  const map = (path.length > 1 ? at(file, path.slice(0, -1)) : file.contents) as YAMLMap;
  const index = map.items.findIndex((pair) => isScalar(pair.key) && pair.key.value === path[path.length - 1]);
  const [begin, end] = map.flow ? flowSpan(map, index) : lineSpan(text, map.items[index]!);
  return proved(text, text.slice(0, begin) + text.slice(end), path, undefined);
}

/** `next` if it says what `text` says but for one value; else the text written anew, comments kept. */
export function proved(text: string, next: string, path: Path, value: unknown): string {
  const file = read(text)!;
  if (value === undefined) file.deleteIn(path);
  else file.setIn(path, value);
  const found = read(next)?.toJS() as unknown;
  return same(trimmed(found), trimmed(file.toJS())) ? next : file.toString({ lineWidth: 0, flowCollectionPadding: false });
}

/** The newline at the end of a command is no matter. */
function trimmed(value: unknown): unknown {
  if (typeof value === 'string') return value.replace(/\n+$/, '');
  if (Array.isArray(value)) return value.map(trimmed);
  if (typeof value !== 'object' || !value) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, trimmed(inner)]));
}

function pairAt(file: Document.Parsed, path: Path): Pair<Node, Node> | undefined {
  const map = path.length > 1 ? at(file, path.slice(0, -1)) : file.contents;
  return isMap(map) ? (map.items.find((pair) => isScalar(pair.key) && pair.key.value === path[path.length - 1]) as Pair<Node, Node> | undefined) : undefined;
}

function span(node: Node): [number, number] {
  return [node.range![0], node.range![1]];
}

function replaced(text: string, pair: Pair<Node, Node>, node: Node, source: string, lines?: string): string {
  const [begin, end] = span(node);
  const inFlow = /[{,]\s*$/.test(text.slice(0, pair.key.range![0]));
  const many = lines?.includes('\n') && !inFlow;
  const old = text.slice(begin, end);
  const header = /^[|>][-+0-9]*/.exec(old);
  const rest = header ? old.slice(header[0].length, lineEnd(old, 0)) : '';
  if (many) {
    const stop = header ? end : lineEnd(text, end);
    const comment = header ? rest : text.slice(end, stop);
    return `${text.slice(0, begin)}|${comment}\n${block(text, pair, lines!)}${header ? '\n' : ''}${text.slice(stop)}`;
  }
  const flat = lines?.includes('\n') ? JSON.stringify(lines) : source;
  return text.slice(0, begin) + flat + rest + (header && old.endsWith('\n') ? '\n' : '') + text.slice(end);
}

/** Lines below a key, indented by two more than it. */
function block(text: string, pair: Pair<Node, Node>, lines: string): string {
  const key = pair.key.range![0];
  return indented(key - lineBegin(text, key), lines);
}

function indented(column: number, lines: string): string {
  return lines.replace(/\n+$/, '').split('\n').map((line) => (line ? ' '.repeat(column + 2) + line : '')).join('\n');
}

/** A new key after those that come before it; a name of somebody's own goes last. */
function inserted(text: string, map: YAMLMap, key: string, source: string, lines?: string, own = false): string {
  const pairs = map.items as Pair<Node, Node>[];
  const before = own || ORDER.indexOf(key) < 0 ? pairs.at(-1) : pairs.filter((pair) => ORDER.indexOf(nameOf(pair)) >= 0 && ORDER.indexOf(nameOf(pair)) < ORDER.indexOf(key)).at(-1);
  const line = `${key}: ${lines?.includes('\n') ? JSON.stringify(lines) : source}`;
  if (map.flow || pairs.length === 0) {
    const place = before?.value?.range?.[1] ?? map.range![0] + 1;
    const [ahead, behind] = before ? [', ', ''] : ['', pairs.length > 0 ? ', ' : ''];
    return text.slice(0, place) + ahead + line + behind + text.slice(place);
  }
  const first = pairs[0]!.key.range![0];
  const column = first - lineBegin(text, first);
  if (!before) return `${text.slice(0, first)}${line}\n${' '.repeat(column)}${text.slice(first)}`;
  const end = lineSpan(text, before)[1];
  const ending = text[end - 1] === '\n' ? '' : '\n';
  return `${text.slice(0, end)}${ending}${' '.repeat(column)}${line}\n${text.slice(end)}`;
}

function nameOf(pair: Pair<Node, Node>): string {
  return isScalar(pair.key) ? String(pair.key.value) : '';
}

export function lineBegin(text: string, place: number): number {
  return text.lastIndexOf('\n', place - 1) + 1;
}

export function lineEnd(text: string, place: number): number {
  const end = text.indexOf('\n', place);
  return end < 0 ? text.length : end;
}

/** The lines of a pair of a block mapping, with the comment behind it. */
function lineSpan(text: string, pair: Pair<unknown, unknown>): [number, number] {
  const { key, value } = pair as Pair<Node, Node | null>;
  const end = value?.range?.[1] ?? key.range![1];
  return [lineBegin(text, key.range![0]), text[end - 1] === '\n' ? end : Math.min(lineEnd(text, end) + 1, text.length)];
}

/** A pair of a flow mapping with one of its commas. */
function flowSpan(map: YAMLMap, index: number): [number, number] {
  const pairs = map.items as Pair<Node, Node>[];
  const [before, pair, after] = [pairs[index - 1], pairs[index]!, pairs[index + 1]];
  const end = pair.value?.range?.[1] ?? pair.key.range![1];
  if (before) return [before.value?.range?.[1] ?? before.key.range![1], end];
  return [pair.key.range![0], after ? after.key.range![0] : end];
}
