/** Follows a log: bytes as they come, taken up again where they broke off. */

import { ApiError, part, request } from './client';
import { job as texts } from '../texts/english/job';

export type LogState = 'opening' | 'live' | 'ended' | 'broken';

export interface LogTarget {
  ref: string;
  /** `worker-0`, or "" for all tasks together. */
  task: string;
  /** One attempt of the task, such as `1.0`; without it all of them, one after the other. */
  attempt?: string;
}

export interface Listener {
  onText: (text: string) => void;
  onState: (state: LogState, problem?: string) => void;
  /** What came before is about to come again. */
  onRestart: () => void;
}

const TAIL_LINES = 5000;
const PAUSE_MS = 1500;

export function logPath({ ref, task }: LogTarget): string {
  if (!task) return `/jobs/${part(ref)}/logs`;
  const cut = task.lastIndexOf('-');
  return `/jobs/${part(ref)}/tasks/${part(task.slice(0, cut))}/${part(task.slice(cut + 1))}/logs`;
}

/** What names the attempt in a question about a log. */
export function attemptOf({ attempt }: Pick<LogTarget, 'attempt'>): Record<string, string> {
  return attempt ? { attempt } : {};
}

/** Reads until the log has ended or `signal` aborts. */
export async function follow(target: LogTarget, signal: AbortSignal, listener: Listener): Promise<void> {
  let next: number | null = null;
  listener.onState('opening');
  for (;;) {
    try {
      const from: Record<string, number> = next === null ? { tail: TAIL_LINES } : { offset: next };
      const response = await request(logPath(target), { query: { follow: true, ...from, ...attemptOf(target) }, signal });
      if (next === null) listener.onRestart();
      listener.onState('live');
      const offset = response.headers.get('X-Corral-Offset');
      if (target.task && offset !== null) next = Number(offset);
      const decoder = new TextDecoder();
      const reader = response.body!.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        if (next !== null) next += value.byteLength;
        listener.onText(decoder.decode(value, { stream: true }));
      }
      listener.onState('ended');
      return;
    } catch (error) {
      if (signal.aborted) return;
      const waits = error instanceof ApiError && error.status > 0 && error.status < 500;
      listener.onState('broken', error instanceof ApiError ? error.message : texts.connectionBrokeTrying);
      if (waits && (error as ApiError).status !== 404) return;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    if (signal.aborted) return;
  }
}
