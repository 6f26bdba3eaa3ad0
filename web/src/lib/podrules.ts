/** Volumes and containers of a pod template as lines of text: `data claim:datasets` and `proxy nginx data:/srv:ro -- nginx -t`. */

import { quantity, scalar } from './jobform';
import type { Sources } from './noderules';

type Json = Record<string, unknown>;

/** The container of the task's command: Corral gives it its image and its command. */
const TASK = 'task';
const NAME = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const SIZE = /^\d+(?:\.\d+)?[A-Za-z]{0,2}$/;
const MOUNT = /^([a-z0-9](?:[-a-z0-9]*[a-z0-9])?):(\/[^\s:]*)(:ro)?$/;
const NFS = /^([^\s:/]+):(\/\S*)$/;

/** What a line calls the sources of volumes that are one text, and where a pod has it. */
const NAMED: Readonly<Record<string, readonly [source: string, field: string]>> = {
  claim: ['persistentVolumeClaim', 'claimName'],
  configMap: ['configMap', 'name'],
  secret: ['secret', 'secretName'],
  hostPath: ['hostPath', 'path'],
};

const isName = (value: unknown): value is string => typeof value === 'string' && NAME.test(value);
const isWord = (value: unknown): value is string => typeof value === 'string' && /^\S+$/.test(value);
const isMap = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);
const only = (item: Json, keys: readonly string[]) => Object.keys(item).every((key) => keys.includes(key));

/** A volume as a line; null where a line cannot say it. */
export function volumeLine({ name, ...sources }: Json): string | null {
  const [[kind, said] = ['', null], ...more] = Object.entries(sources);
  if (!isName(name) || more.length > 0 || !isMap(said)) return null;
  if (kind === 'emptyDir') {
    const { medium = '', sizeLimit = '' } = said;
    const size = String(sizeLimit);
    if (!only(said, ['medium', 'sizeLimit']) || (medium !== '' && medium !== 'Memory') || (size && !SIZE.test(size))) return null;
    return `${name} ${medium ? 'memory' : 'empty'}${size && `:${size}`}`;
  }
  if (kind === 'nfs') {
    const from = `${String(said.server)}:${String(said.path)}`;
    return only(said, ['server', 'path']) && NFS.test(from) ? `${name} nfs:${from}` : null;
  }
  const word = Object.keys(NAMED).find((each) => NAMED[each]![0] === kind);
  const value = word && said[NAMED[word]![1]];
  return word && isWord(value) && Object.keys(said).length === 1 ? `${name} ${word}:${value}` : null;
}

export function volumeSources(line: string): Sources | null {
  const [name, source = '', ...more] = line.split(/\s+/);
  const [, kind = '', what] = /^([A-Za-z]+)(?::(.+))?$/.exec(source) ?? [];
  if (!isName(name) || more.length > 0) return null;
  const made = (key: string, said: Sources): Sources => ({ name: scalar(name), [key]: flow(said) });
  if (kind === 'empty' || kind === 'memory') {
    if (what !== undefined && !SIZE.test(what)) return null;
    return made('emptyDir', { ...(kind === 'memory' && { medium: 'Memory' }), ...(what !== undefined && { sizeLimit: quantity(what) }) });
  }
  if (what === undefined) return null;
  const [, server, path] = (kind === 'nfs' && NFS.exec(what)) || [];
  if (server !== undefined) return made('nfs', { server: scalar(server), path: scalar(path!) });
  const named = Object.hasOwn(NAMED, kind) ? NAMED[kind]! : null;
  return named && made(named[0], { [named[1]]: scalar(what) });
}

/** A container as a line; null where a line cannot say it. The task's own has volumes alone. */
export function containerLine(item: Json): string | null {
  const { name, image, command, volumeMounts = [] } = item;
  if (!isName(name) || !only(item, ['name', 'image', 'command', 'volumeMounts']) || !Array.isArray(volumeMounts)) return null;
  if (name === TASK ? image !== undefined || command !== undefined : !isImage(image)) return null;
  const mounts = volumeMounts.map((each: unknown) => (isMap(each) ? mountWord(each) : null));
  const [shell, option, said, ...more] = Array.isArray(command) ? (command as unknown[]) : ['sh', '-c', ''];
  if (mounts.includes(null) || (command !== undefined && !Array.isArray(command))) return null;
  if (shell !== 'sh' || option !== '-c' || typeof said !== 'string' || more.length > 0) return null;
  if (/[\r\n\u2028\u2029]/.test(said) || said !== said.trim() || (command !== undefined && !said)) return null;
  return [name, ...(name === TASK ? [] : [image as string]), ...(mounts as string[]), ...(said ? ['--', said] : [])].join(' ');
}

const isImage = (value: unknown): value is string => isWord(value) && !MOUNT.test(value) && value !== '--';

function mountWord(mount: Json): string | null {
  const { name, mountPath, readOnly = false } = mount;
  const word = `${String(name)}:${String(mountPath)}${readOnly === true ? ':ro' : ''}`;
  return only(mount, ['name', 'mountPath', 'readOnly']) && typeof readOnly === 'boolean' && MOUNT.test(word) ? word : null;
}

export function containerSources(line: string): Sources | null {
  const [, front = '', command] = /^(.*?)(?:\s--\s+(.+))?$/.exec(line) ?? [];
  const [name, ...words] = front.trim().split(/\s+/);
  const image = name === TASK ? undefined : words.shift();
  const mounts = words.map((word) => MOUNT.exec(word));
  if (!isName(name) || mounts.includes(null)) return null;
  if (name === TASK ? command !== undefined : !isImage(image)) return null;
  const placed = mounts.map((found) => {
    const [, volume, path, readOnly] = found!;
    return flow({ name: scalar(volume!), mountPath: scalar(path!), ...(readOnly && { readOnly: 'true' }) });
  });
  return {
    name: scalar(name),
    ...(image !== undefined && { image: scalar(image) }),
    ...(command !== undefined && { command: `[sh, -c, ${JSON.stringify(command)}]` }),
    ...(placed.length > 0 && { volumeMounts: `[${placed.join(', ')}]` }),
  };
}

/** A map on one line. */
function flow(said: Sources): string {
  return `{${Object.entries(said).map(([key, value]) => `${key}: ${value}`).join(', ')}}`;
}
