/** Accounts as their page has them: found by a search, told in words, and as a list of many. */

import type { Batch, BatchLine, UserView } from '../api/types';
import { people as texts } from '../texts/english/people';
import { fill, number } from '../texts/fill';

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
  if (!text.trim()) return texts.writeLineNames;
  if (new TextEncoder().encode(text).length > MOST_BYTES) return fill(texts.listHasMost, { most: MOST_BYTES / 1024 });
  if (text.trim().split(/\r?\n/).length < 2) return texts.firstLineNamesColumns;
  return '';
}

export const actionWord = (action: BatchLine['action']): string => texts.batchActions[action];

/** `2 new, 1 changed, 1 refused`; an action that no line has is left out. */
export function counts(batch: Batch): string {
  const actions = Object.keys(texts.batchActions) as BatchLine['action'][];
  return actions
    .map((action) => [action, batch.lines.filter((line) => line.action === action).length] as const)
    .filter(([, lines]) => lines > 0)
    .map(([action, lines]) => fill(texts.batchCount, { count: number(lines), action: actionWord(action) }))
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
