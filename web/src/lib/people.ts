/** Accounts as their page has them: found by a search, told in words, and as a list of many. */

import type { Batch, BatchLine, UserView } from '../api/types';

/** Groups that are always there: nobody is put into the one of those who are in no other, or made administrator by a list. */
export const DEFAULT_GROUP = 'default';
export const ADMIN_GROUP = 'admingroup';

/** The accounts whose name, address, role or groups have every word of `search` in them. */
export function found(users: readonly UserView[], search: string): UserView[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return users.filter((user) => {
    const said = [user.name, user.email, user.role, ...user.groups, user.disabled ? 'disabled' : ''].join(' ').toLowerCase();
    return words.every((word) => said.includes(word));
  });
}

/** The most bytes that the server takes of a list, and the accounts in one. */
export const MOST_BYTES = 256 * 1024;

/** Why a list is not worth sending, as a sentence; '' if it is. */
export function unsendable(text: string): string {
  if (!text.trim()) return 'Write a line with the names of the columns, and one for each account.';
  if (new TextEncoder().encode(text).length > MOST_BYTES) return `A list has at most ${MOST_BYTES / 1024} KiB; split it.`;
  if (text.trim().split(/\r?\n/).length < 2) return 'The first line names the columns; write a line for each account below it.';
  return '';
}

const WORDS: Record<BatchLine['action'], string> = { create: 'new', change: 'changed', unchanged: 'unchanged', refused: 'refused' };
export const actionWord = (action: BatchLine['action']) => WORDS[action];

/** `2 new, 1 changed, 1 refused`; an action that no line has is left out. */
export function counts(batch: Batch): string {
  const actions = Object.keys(WORDS) as BatchLine['action'][];
  return actions
    .map((action) => [action, batch.lines.filter((line) => line.action === action).length] as const)
    .filter(([, number]) => number > 0)
    .map(([action, number]) => `${number.toLocaleString('en')} ${WORDS[action]}`)
    .join(', ');
}

/** Whether the list may be applied: it changes something, and no line is refused. */
export function appliable(batch: Batch): boolean {
  const actions = batch.lines.map((line) => line.action);
  return !actions.includes('refused') && actions.some((action) => action !== 'unchanged');
}

export const linkAddress = (link: string, origin: string) => `${origin}/sign-in#link=${link}`;

/** The sign-in links of the accounts that were made, a line each. */
export function linksText(batch: Batch, origin: string): string {
  const made = batch.lines.filter((line) => line.link);
  return made.map((line) => `${line.name},${linkAddress(line.link, origin)}\n`).join('');
}
