/** Questions that the server answers later: their progress comes as events, and whoever stops waiting for a what-if question cancels it. */

import { progress } from '../texts/english/shadow';
import { faults } from '../texts/english/shared';
import { fill } from '../texts/fill';
import { ApiError, call, request } from './client';
import { FrameParser } from './sse';
import type { WhatIfAnswer, WhatIfProgress, WhatIfRefusal, WhatIfStatus } from './types';

const PAUSE_MS = 1000;
/** For how long a server that does not answer is asked again. */
const PATIENCE_MS = 60_000;

/** Until the last question that was cancelled has ended at the server, which answers one of a user at a time. */
let cancelling: Promise<unknown> = Promise.resolve();

export interface Following {
  /** Ends the waiting; of a what-if question also its work at the server. */
  signal: AbortSignal;
  onProgress: (progress: WhatIfProgress) => void;
  /** Waits before another look; tests pass their own. */
  pause?: (milliseconds: number) => Promise<void>;
}

/** The answer to a question; throws the refusal that it would have had at once. */
export async function askLater(question: unknown, { signal, onProgress, pause = sleep }: Following): Promise<WhatIfAnswer> {
  await cancelling;
  signal.throwIfAborted();
  // Without the signal: a call that is cut off would leave a question whose address nobody knows.
  const taken = call<WhatIfStatus>('/what-if', { method: 'POST', json: question, headers: { Prefer: 'respond-async' } });
  const cancel = () => {
    cancelling = taken.then(({ id }) => request(`/what-if/${id}`, { method: 'DELETE', keepalive: true })).catch(() => undefined);
  };
  signal.addEventListener('abort', cancel, { once: true });
  try {
    return await follow<WhatIfAnswer>(`/what-if/${(await taken).id}`, { signal, onProgress, pause });
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

/** What the server tells of a question or a comparison. */
interface Status<Answer> {
  state: string;
  answer: Answer | null;
  error: WhatIfRefusal | null;
}

/** The answer of the question at a path, once it is there; throws its refusal. */
export async function follow<Answer>(path: string, { signal, onProgress, pause = sleep }: Following): Promise<Answer> {
  return answerOf(await ended<Answer>(path, signal, onProgress, pause));
}

async function ended<Answer>(path: string, signal: AbortSignal, onProgress: Following['onProgress'], pause: NonNullable<Following['pause']>): Promise<Status<Answer>> {
  let silentSince = 0;
  for (;;) {
    try {
      await readStates(path, signal, onProgress);
      const status = await call<Status<Answer>>(path, { signal });
      if (status.state !== 'running') return status;
      silentSince = 0;
    } catch (error) {
      const away = error instanceof ApiError && (error.status === 0 || error.status === 429 || error.status === 503);
      silentSince ||= Date.now();
      if (signal.aborted || !away || Date.now() > silentSince + PATIENCE_MS) throw error;
    }
    await pause(PAUSE_MS);
  }
}

async function readStates(path: string, signal: AbortSignal, onProgress: Following['onProgress']): Promise<void> {
  const response = await request(`${path}/events`, { signal });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new FrameParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      for (const frame of parser.feed(value)) onProgress((JSON.parse(frame.data) as WhatIfStatus).progress);
    }
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ApiError(0, 'unreachable', fill(faults.unreachable, { command: 'corral up' }));
  }
}

function answerOf<Answer>({ answer, error }: Status<Answer>): Answer {
  if (error) throw new ApiError(error.status, error.code, error.message, error.problems);
  if (!answer) throw new ApiError(0, 'question-cancelled', progress.cancelled.question);
  return answer;
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
