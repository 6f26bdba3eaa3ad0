/** The page while the server is down: kept by a service worker where the browser has one, and shown again by itself. */

import { ApiError } from '../api/client';

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
