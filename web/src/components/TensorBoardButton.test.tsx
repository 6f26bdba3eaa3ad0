// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { TensorBoardButton } from './TensorBoardButton';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

async function press(answer: () => Promise<Response>) {
  const asked = vi.fn(answer);
  vi.stubGlobal('fetch', asked);
  const root = createRootRoute();
  const at = createRoute({ getParentRoute: () => root, path: '/', component: () => <TensorBoardButton jobs={[{ id: 'j1' }]} /> });
  const open = createRoute({ getParentRoute: () => root, path: '/jobs/$ref/open/$task/$port', component: () => <p>opens</p> });
  const router = createRouter({ routeTree: root.addChildren([at, open]), history: createMemoryHistory({ initialEntries: ['/'] }) });
  await router.load();
  render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { mutations: { retryDelay: 1 } } })}>
      <RouterProvider router={router as never} />
    </QueryClientProvider>,
  );
  fireEvent.click(screen.getByRole('button'));
  return asked;
}

it('asks again when the connection was lost, and goes where TensorBoard opens', async () => {
  let lost = 2;
  const asked = await press(async () => {
    if (lost-- > 0) throw new TypeError('Failed to fetch');
    return new Response(JSON.stringify({ id: 't1' }), { status: 202 });
  });
  await waitFor(() => expect(screen.getByText('opens')).toBeDefined());
  expect(asked).toHaveBeenCalledTimes(3);
});

it('shows a refusal at once', async () => {
  const refusal = { code: 'no-outputs', message: 'digits keeps nothing that TensorBoard can read.' };
  const asked = await press(async () => new Response(JSON.stringify(refusal), { status: 409 }));
  await waitFor(() => expect(screen.getByText(refusal.message)).toBeDefined());
  expect(asked).toHaveBeenCalledTimes(1);
});
