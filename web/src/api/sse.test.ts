import { afterEach, expect, it, vi } from 'vitest';
import { session, signedInAgain } from './client';
import { FrameParser, stream, type Frame } from './sse';

afterEach(() => vi.unstubAllGlobals());

it('reads frames that are cut anywhere', () => {
  const text = ': hello\n\nid: 7\nevent: job.started\ndata: {"a":1}\n\nid: 8\nevent: x\ndata: one\ndata: two\n\n';
  for (let cut = 0; cut <= text.length; cut += 1) {
    const parser = new FrameParser();
    expect([...parser.feed(text.slice(0, cut)), ...parser.feed(text.slice(cut))]).toEqual([
      { id: '7', event: 'job.started', data: '{"a":1}' },
      { id: '8', event: 'x', data: 'one\ntwo' },
    ]);
  }
});

it('keeps the last id for frames without one', () => {
  const parser = new FrameParser();
  expect(parser.feed('id: 3\ndata: a\n\ndata: b\n\n').map((frame) => frame.id)).toEqual(['3', '3']);
});

it('goes on after the last event that it received', async () => {
  const abort = new AbortController();
  const asked: (string | undefined)[] = [];
  const bodies = ['id: 4\ndata: a\n\n', 'id: 5\ndata: b\n\n'];
  vi.stubGlobal('fetch', async (_url: string, options: { headers: Record<string, string> }) => {
    asked.push(options.headers['Last-Event-ID']);
    const body = bodies.shift();
    if (body === undefined) {
      abort.abort();
      throw new Error('aborted');
    }
    return new Response(body);
  });
  const frames: Frame[] = [];
  const states: boolean[] = [];
  await stream({
    url: '/events',
    signal: abort.signal,
    onFrame: (frame) => frames.push(frame),
    onState: (state) => states.push(state),
    pause: async () => undefined,
  });
  expect(frames.map((frame) => frame.data)).toEqual(['a', 'b']);
  expect(asked).toEqual([undefined, '4', '5']);
  expect(states).toEqual([true, false, true, false]);
});

it('tells of a session that ended, and goes on when its reader signs in again', async () => {
  const abort = new AbortController();
  const answers = [new Response('', { status: 401 }), new Response('id: 4\ndata: a\n\n')];
  vi.stubGlobal('fetch', async () => answers.shift() ?? Promise.reject(abort.abort()));
  const before = session.onLost;
  session.onLost = vi.fn(() => void Promise.resolve().then(signedInAgain));
  const frames: Frame[] = [];
  await stream({ url: '/events', signal: abort.signal, onFrame: (frame) => frames.push(frame), onState: vi.fn(), pause: async () => undefined });
  expect(session.onLost).toHaveBeenCalledOnce();
  expect(frames.map((frame) => frame.data)).toEqual(['a']);
  session.onLost = before;
});

it('ends with the page while the session is over', async () => {
  const abort = new AbortController();
  vi.stubGlobal('fetch', async () => {
    setTimeout(() => abort.abort());
    return new Response('', { status: 401 });
  });
  await stream({ url: '/events', signal: abort.signal, onFrame: vi.fn(), onState: vi.fn() });
});
