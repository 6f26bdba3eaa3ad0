import { afterEach, expect, it, vi } from 'vitest';
import { follow, logPath, type LogState } from './logs';

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

it('finds the path of a task whose role has a dash', () => {
  expect(logPath({ ref: 'id', task: 'param-server-12' })).toBe('/jobs/id/tasks/param-server/12/logs');
  expect(logPath({ ref: 'id', task: '' })).toBe('/jobs/id/logs');
});

function breaking(text: string): ReadableStream<Uint8Array> {
  let sent = false;
  return new ReadableStream({
    pull(controller) {
      if (sent) controller.error(new Error('cut'));
      else controller.enqueue(new TextEncoder().encode(text));
      sent = true;
    },
  });
}

it('reads on from the byte where the connection broke', async () => {
  vi.useFakeTimers();
  const urls: string[] = [];
  const answers = [
    () => new Response(breaking('grüß\n'), { headers: { 'X-Corral-Offset': '100' } }),
    () => new Response('rest\n', { headers: { 'X-Corral-Offset': '107' } }),
  ];
  vi.stubGlobal('fetch', async (url: string) => {
    urls.push(url);
    return answers.shift()!();
  });
  const texts: string[] = [];
  const states: LogState[] = [];
  const onRestart = vi.fn();
  const done = follow({ ref: 'id', task: 'worker-0' }, new AbortController().signal, {
    onText: (text) => texts.push(text),
    onState: (state) => states.push(state),
    onRestart,
  });
  await vi.advanceTimersByTimeAsync(5000);
  await done;
  expect(texts.join('')).toBe('grüß\nrest\n');
  expect(urls[0]).toContain('tail=');
  expect(urls[1]).toContain('offset=107');
  expect(states).toEqual(['opening', 'live', 'broken', 'live', 'ended']);
  expect(onRestart).toHaveBeenCalledOnce();
});

it('follows one attempt where one is named, and all of them otherwise', async () => {
  const urls: string[] = [];
  vi.stubGlobal('fetch', async (url: string) => {
    urls.push(url);
    return new Response('', { headers: { 'X-Corral-Offset': '0' } });
  });
  const listener = { onText: vi.fn(), onState: vi.fn(), onRestart: vi.fn() };
  await follow({ ref: 'id', task: 'worker-0', attempt: '0.1' }, new AbortController().signal, listener);
  await follow({ ref: 'id', task: 'worker-0', attempt: '' }, new AbortController().signal, listener);
  expect(urls.map((url) => new URL(url, 'http://here').searchParams.get('attempt'))).toEqual(['0.1', null]);
});

it('gives up where the server refuses for good', async () => {
  vi.stubGlobal('fetch', async () => new Response(JSON.stringify({ code: 'forbidden', message: 'Not yours.' }), { status: 403 }));
  const onState = vi.fn();
  await follow({ ref: 'id', task: '' }, new AbortController().signal, { onText: vi.fn(), onState, onRestart: vi.fn() });
  expect(onState).toHaveBeenLastCalledWith('broken', 'Not yours.');
});
