/** Paths in a storage, and sizes of files. */

import { number } from '../texts/fill';

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** `1536` is `1.5 KiB`. */
export function size(count: number): string {
  let unit = 0;
  let value = count;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${number(value, { maximumFractionDigits: unit > 0 && value < 100 ? 1 : 0 })} ${UNITS[unit]}`;
}

export interface Crumb {
  name: string;
  path: string;
}

/** The folders on the way to `path`, the outermost first; the storage itself is none of them. */
export function crumbs(path: string): Crumb[] {
  const names = path.split('/').filter(Boolean);
  return names.map((name, at) => ({ name, path: names.slice(0, at + 1).join('/') }));
}

/** The last name of a path. */
export const lastName = (path: string) => path.split('/').filter(Boolean).at(-1) ?? '';

/** The folder that a path is in; the outermost one is empty. */
export const parent = (path: string) => path.split('/').filter(Boolean).slice(0, -1).join('/');

/** The path of `name` in the folder `path`. */
export const inside = (path: string, name: string) => (path ? `${path}/${name}` : name);
