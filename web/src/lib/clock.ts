/** The server's time: what the server stamped is compared with it, so a wrong clock of this machine shows no wrong ages. */

/** The header `Date` tells whole seconds, which have passed in part. */
const SECOND_MS = 1_000;

let ahead = 0;

/**
 * How far the server's clock is ahead of this machine's, by the `Date` of an answer between whose request and arrival the
 * server wrote it; the nearest possible figure to the one that was believed before.
 */
export function aheadBy(date: string | null, asked: number, came: number, believed: number): number {
  const told = Date.parse(date ?? '');
  if (Number.isNaN(told)) return believed;
  return Math.min(Math.max(believed, told - came), told + SECOND_MS - asked);
}

/** Takes the server's time from an answer that has just come. */
export function learn(date: string | null, asked: number): void {
  ahead = aheadBy(date, asked, Date.now(), ahead);
}

/** The server's time in milliseconds. */
export const serverNow = () => Date.now() + ahead;

/** The server's day, `2026-11-28`, in UTC. */
export const serverToday = () => new Date(serverNow()).toISOString().slice(0, 10);
