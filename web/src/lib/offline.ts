/** The page while the server is down: kept by a service worker where the browser has one, and shown again by itself. */

import type { Query, QueryClient } from '@tanstack/react-query';
import { ApiError } from '../api/client';
import { faults } from '../texts/english/shared';

/** Statuses by which a proxy says that the server behind it is down; 0 is no answer at all. */
const DOWN: readonly number[] = [0, 502, 503, 504];
const NO_FILE = /dynamically imported module|Importing a module script failed|Unable to preload/;

/** Register the service worker; over plain HTTP browsers have one on the machine itself only (localhost). */
export function keepPage(): void {
  if (!import.meta.env.PROD || !('serviceWorker' in navigator)) return;
  navigator.serviceWorker.register('/sw.js', { updateViaCache: 'none' }).catch(() => undefined);
}

/** Whether a fault is that the server does not answer, or no longer has a file of this page: a reload mends both. */
export function isOutage(error: unknown): boolean {
  if (error instanceof ApiError) return DOWN.includes(error.status);
  return error instanceof Error && NO_FILE.test(error.message);
}

/** Resolve once the server answers; asks every `pause` milliseconds until `signal` ends it. */
export async function answers(signal: AbortSignal, pause = 2_000): Promise<void> {
  while (!signal.aborted) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    const status = await fetch('/healthz', { signal, cache: 'no-store' }).then(
      (answer) => answer.status,
      () => 0,
    );
    if (!signal.aborted && !DOWN.includes(status)) return;
  }
  await new Promise(() => undefined);
}

/**
 * The module of a page.
 *
 * Throws an outage when one of its files did not come. The router would meet the browser's own error by a reload, and only by one: where
 * that did not help, its page stayed empty.
 */
export async function arrived<Module>(module: Promise<Module>): Promise<Module> {
  try {
    return await module;
  } catch (error) {
    throw isOutage(error) ? new ApiError(0, 'unreachable', faults.noFile) : error;
  }
}

const lost = (error: unknown) => error instanceof ApiError && error.status === 0;
const waiting = new WeakSet<QueryClient>();
const pauses = new WeakMap<QueryClient, number>();
const LONGEST_PAUSE = 60_000;

/**
 * Once the server answers, ask again what it did not answer: a connection can break while the server is up, as when a network changes.
 *
 * What gets lost again is asked for after twice the pause, at most a minute: a browser may refuse it whatever the server does.
 */
export function comeBack(client: QueryClient, error: unknown, pause = 2_000): void {
  if (!lost(error) || waiting.has(client)) return;
  waiting.add(client);
  const next = pauses.get(client) ?? pause;
  const filter = { type: 'active', predicate: ({ state }: Query) => state.status === 'error' && lost(state.error) } as const;
  void answers(new AbortController().signal, next).then(async () => {
    waiting.delete(client);
    pauses.set(client, Math.min(2 * next, LONGEST_PAUSE));
    await client.refetchQueries(filter);
    if (client.getQueryCache().findAll(filter).length === 0) pauses.delete(client);
  });
}
