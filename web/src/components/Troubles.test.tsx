// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import { Troubles } from './Troubles';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function shown(status: number, said: object) {
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify(said), { status })));
  return render(
    <QueryClientProvider client={new QueryClient()}>
      <Troubles />
    </QueryClientProvider>,
  );
}

test.each([
  ['works beside it', 200, { ready: true, degraded: true }],
  ['is not ready', 503, { ready: false, degraded: false }],
])('what is wrong is said on every page of a server that %s', async (_, status, said) => {
  shown(status, { ...said, reasons: ['The disk is full.', 'The scheduler does not answer.'] });
  expect((await screen.findByRole('alert')).textContent).toBe('The disk is full.The scheduler does not answer.');
});

test('a server that is well says nothing', async () => {
  const { container } = shown(200, { ready: true, degraded: false, reasons: [] });
  await vi.waitFor(() => expect(container.innerHTML).toBe(''));
});
