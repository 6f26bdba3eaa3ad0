/** The command line that does what a page or a button does. */

import type { JobFilter } from '../api/queries';

/** Quoted for a POSIX shell where it must be. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export function listLine(filter: JobFilter): string {
  const words = ['corral', 'ls'];
  for (const state of filter.state?.split(',').filter(Boolean) ?? []) words.push('--state', state);
  if (filter.user) words.push('--user', filter.user);
  if (filter.queue) words.push('--queue', filter.queue);
  if (filter.q) words.push('--search', filter.q);
  return words.map(quote).join(' ');
}

export function jobLine(action: string, ref: string, ...words: (string | number)[]): string {
  return ['corral', action, ref, ...words].map((word) => quote(String(word))).join(' ');
}
