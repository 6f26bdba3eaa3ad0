// @vitest-environment happy-dom
import { act, cleanup, renderHook, waitFor } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { useLog } from './useLog';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

/** A server whose answers go on until they are told to end. */
function logs() {
  const open: ReadableStreamDefaultController<Uint8Array>[] = [];
  vi.stubGlobal('fetch', async () => {
    const body = new ReadableStream<Uint8Array>({ start: (controller) => void open.push(controller) });
    return new Response(body, { headers: { 'X-Corral-Offset': '0' } });
  });
  return open;
}

const say = (text: string) => new TextEncoder().encode(text);

it('goes on in the same stream when the job begins its next attempt', async () => {
  const open = logs();
  const log = renderHook(({ generation }) => useLog('id', 'worker-0', '', generation), { initialProps: { generation: 0 } });
  await waitFor(() => expect(open).toHaveLength(1));
  open[0]!.enqueue(say('one\n'));
  await waitFor(() => expect(log.result.current.buffer.lines).toHaveLength(1));
  log.rerender({ generation: 1 });
  open[0]!.enqueue(say('\n[corral: attempt 0.0 ended: Preempted (exit code -1003); attempt 1.0 follows]\ntwo\n'));
  await waitFor(() => expect(log.result.current.buffer.lines.map((line) => line.text).at(-1)).toBe('two'));
  expect(log.result.current.buffer.lines[0]!.text).toBe('one');
  expect(open).toHaveLength(1);
});

it('follows anew when a job that was over is restarted', async () => {
  const open = logs();
  const log = renderHook(({ generation }) => useLog('id', 'worker-0', '', generation), { initialProps: { generation: 0 } });
  await waitFor(() => expect(open).toHaveLength(1));
  await act(async () => open[0]!.close());
  await waitFor(() => expect(log.result.current.state).toBe('ended'));
  log.rerender({ generation: 1 });
  await waitFor(() => expect(open).toHaveLength(2));
});
