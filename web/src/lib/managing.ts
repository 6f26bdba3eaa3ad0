/** What the managers of a queue may do, and the limits that they set as a table: a row for each resource. */

import type { Limits, QueueLimits } from '../api/types';

/** Whether somebody manages a queue; administrators manage all. */
export function manages(me: { role: string; manages: readonly string[] } | undefined, queue: string): boolean {
  return !!me && (me.role === 'admin' || me.manages.includes('*') || me.manages.includes(queue));
}

export const WHO = ['limit', 'userLimit', 'groupLimit'] as const;
export type Who = (typeof WHO)[number];

/** What the table has, as the server takes it: cells without an amount are no limits. */
export function limitsOf(cells: Record<Who, Limits>): QueueLimits {
  const said = (limits: Limits) =>
    Object.fromEntries(Object.entries(limits).flatMap(([resource, amount]) => (amount.trim() ? [[resource, amount.trim()]] : [])));
  return { limit: said(cells.limit), userLimit: said(cells.userLimit), groupLimit: said(cells.groupLimit) };
}

const COMMON = ['devices', 'cpu', 'memory'];

/** The resources that a table of limits has rows for: the common ones, and those that some limit names. */
export function limited(...of: readonly Limits[]): string[] {
  return [...new Set([...COMMON, ...of.flatMap((limits) => Object.keys(limits)).sort()])];
}

/** What a queue's own document says may be held. */
export function ownLimit(doc: Record<string, unknown>, who: Who): Limits {
  const found = doc[who];
  const own = typeof found === 'object' && found ? found : {};
  return Object.fromEntries(Object.entries(own).map(([resource, amount]) => [resource, String(amount)]));
}

/** The options of `corral limit` that set these limits. */
export function limitLine(queue: string, limits: QueueLimits): string {
  const options = { limit: '--all', userLimit: '--user', groupLimit: '--group' };
  const words = WHO.flatMap((who) => Object.entries(limits[who]).map(([resource, amount]) => `${options[who]} ${resource}=${amount}`));
  return ['corral limit', queue, ...(words.length > 0 ? words : ['--clear'])].join(' ');
}
