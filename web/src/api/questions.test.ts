import { afterEach, expect, it, vi } from 'vitest';
import { ApiError } from './client';
import { askLater } from './questions';

afterEach(() => vi.unstubAllGlobals());

const PROGRESS = { fraction: 0.5, stage: 'before', says: 'Plays things as they are.' };
const status = (state: string, more: object = {}) => ({ id: 'q', state, progress: PROGRESS, answer: null, error: null, ...more });
const events = (...states: string[]) => new Response(states.map((state) => `event: ${state}\ndata: ${JSON.stringify(status(state))}\n\n`).join(''));
const json = (body: unknown, code = 200) => new Response(JSON.stringify(body), { status: code });

/** A server that gives these answers in turn; returns the calls that came. */
function server(...answers: (() => Response | Promise<Response>)[]) {
  const calls: string[] = [];
  vi.stubGlobal('fetch', async (url: string, { method }: { method: string }) => {
    calls.push(`${method} ${url.replace('/api/v3', '')}`);
    if (method === 'DELETE') return new Response(null, { status: 204 });
    return answers.shift()!();
  });
  return calls;
}

const pause = async () => undefined;

it('tells the progress and gives the answer', async () => {
  const calls = server(() => json(status('running'), 202), () => events('running', 'done'), () => json(status('done', { answer: { seeds: 3 } })));
  const told: number[] = [];
  const answer = await askLater({}, { signal: new AbortController().signal, onProgress: (each) => told.push(each.fraction), pause });
  expect(answer).toEqual({ seeds: 3 });
  expect(told).toEqual([0.5, 0.5]);
  expect(calls).toEqual(['POST /what-if', 'GET /what-if/q/events', 'GET /what-if/q']);
});

it('throws the refusal with its problems', async () => {
  const error = { status: 400, code: 'bad', message: 'It is bad.', problems: [{ path: 'a', message: 'b', line: 1, column: 2, file: '' }] };
  server(() => json(status('running'), 202), () => events('failed'), () => json(status('failed', { error })));
  const refused = askLater({}, { signal: new AbortController().signal, onProgress: () => undefined, pause });
  await expect(refused).rejects.toMatchObject({ status: 400, code: 'bad', message: 'It is bad.', problems: error.problems });
});

it('asks again while the server does not answer, and tells what it lost', async () => {
  const gone = () => Promise.reject(new TypeError('no network'));
  const calls = server(() => json(status('running'), 202), gone, gone, () => json({ code: 'question-not-found', message: 'There is none.' }, 404));
  const refused = askLater({}, { signal: new AbortController().signal, onProgress: () => undefined, pause });
  await expect(refused).rejects.toThrow(new ApiError(404, 'question-not-found', 'There is none.'));
  expect(calls).toHaveLength(4);
});

it('cancels the question at the server when it is aborted, also before its address is known', async () => {
  for (const early of [true, false]) {
    const controller = new AbortController();
    const hangs = () => new Promise<Response>((_, reject) => controller.signal.addEventListener('abort', () => reject(new DOMException('', 'AbortError'))));
    const taken = async () => {
      await Promise.resolve();
      if (early) controller.abort();
      return json(status('running'), 202);
    };
    const calls = server(taken, early ? () => Promise.reject(new DOMException('', 'AbortError')) : hangs);
    const asking = askLater({}, { signal: controller.signal, onProgress: () => undefined, pause });
    if (!early) setTimeout(() => controller.abort());
    await expect(asking).rejects.toThrow();
    await vi.waitFor(() => expect(calls).toContain('DELETE /what-if/q'));
  }
});

it('asks the next question when the one that was cancelled has ended', async () => {
  const controller = new AbortController();
  const calls: string[] = [];
  let end = () => undefined as void;
  vi.stubGlobal('fetch', async (url: string, { method, signal }: { method: string; signal?: AbortSignal }) => {
    calls.push(`${method} ${url.replace('/api/v3', '')}`);
    if (method === 'DELETE') await new Promise<void>((resolve) => (end = resolve));
    else if (method === 'GET') await new Promise((_, reject) => signal!.addEventListener('abort', () => reject(new DOMException('', 'AbortError'))));
    return method === 'DELETE' ? new Response(null, { status: 204 }) : json(status('running'), 202);
  });
  const onProgress = () => undefined;
  const first = askLater({}, { signal: controller.signal, onProgress, pause });
  await vi.waitFor(() => expect(calls).toHaveLength(2));
  controller.abort();
  await expect(first).rejects.toThrow();
  const second = new AbortController();
  const asking = askLater({}, { signal: second.signal, onProgress, pause });
  await vi.waitFor(() => expect(calls.at(-1)).toBe('DELETE /what-if/q'));
  end();
  await vi.waitFor(() => expect(calls.slice(2)).toEqual(['DELETE /what-if/q', 'POST /what-if', 'GET /what-if/q/events']));
  second.abort();
  await expect(asking).rejects.toThrow();
});
