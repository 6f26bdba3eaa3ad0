// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, expect, it, vi } from 'vitest';
import type { JobDetail } from '../api/types';
import { ExitNote } from './ExitNote';
import { JobActions } from './JobActions';

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

const OWNERS = ['delete', 'edit', 'environment', 'exec', 'logs', 'restart', 'resume', 'scale', 'stop', 'suspend', 'tag'];

function job(change: Partial<JobDetail>): JobDetail {
  return { id: 'j1', name: 'digits', user: 'ada', state: 'running', suspended: false, roles: [], allowed: [], exit: null, ...change } as unknown as JobDetail;
}

async function show(page: ReactNode) {
  const root = createRootRoute();
  const at = createRoute({ getParentRoute: () => root, path: '/', component: () => page });
  const router = createRouter({ routeTree: root.addChildren([at]), history: createMemoryHistory({ initialEntries: ['/'] }) });
  await router.load();
  render(
    <QueryClientProvider client={new QueryClient()}>
      <RouterProvider router={router as never} />
    </QueryClientProvider>,
  );
}

it("offers of another person's job nothing that would be refused", async () => {
  await show(<JobActions job={job({})} />);
  expect(screen.getByText('Clone')).toBeDefined();
  expect(screen.queryAllByRole('button')).toEqual([]);
});

it('offers the owner what the state of the job allows', async () => {
  await show(<JobActions job={job({ allowed: OWNERS })} />);
  expect(screen.getAllByRole('button').map((each) => each.textContent)).toEqual(['Suspend', 'Restart', 'Stop']);
  cleanup();
  await show(<JobActions job={job({ allowed: OWNERS, state: 'failed' })} />);
  expect(screen.getAllByRole('button').map((each) => each.textContent)).toEqual(['Restart', 'Delete']);
});

it('offers to edit a job that waits, and asks for what was changed alone', async () => {
  const sent: unknown[] = [];
  vi.stubGlobal('fetch', async (url: string, options?: RequestInit) => {
    if (options?.method === 'PATCH') sent.push([String(url), JSON.parse(String(options.body))]);
    return Response.json(String(url).includes('/queues') ? { items: [{ name: 'vision', standing: null }], next: null } : { user: 'ada' });
  });
  const spec = { queue: 'default', priority: 'test', maxDurationSeconds: 0 };
  const document = { metadata: { name: 'digits' }, spec } as unknown as JobDetail['document'];
  await show(<JobActions job={job({ allowed: OWNERS, state: 'waiting', document })} />);
  fireEvent.click(screen.getByText('Edit'));
  expect(screen.getByText('Change')).toHaveProperty('disabled', true);
  fireEvent.change(screen.getByLabelText('Priority'), { target: { value: 'prod' } });
  await screen.findByText('corral edit digits --priority prod');
  fireEvent.click(screen.getByText('Change'));
  await waitFor(() => expect(sent).toEqual([['/api/v3/jobs/j1', { priority: 'prod' }]]));
  cleanup();
  await show(<JobActions job={job({ state: 'waiting', document })} />);
  expect(screen.queryByText('Edit')).toBeNull();
});

it('takes a refusal of an edit back once a field is changed', async () => {
  vi.stubGlobal('fetch', async (url: string, options?: RequestInit) =>
    options?.method === 'PATCH'
      ? Response.json({ code: 'priority-too-high', message: 'Priority 900 is too high.' }, { status: 403 })
      : Response.json(String(url).includes('/queues') ? { items: [], next: null } : { user: 'ada' }),
  );
  const document = { metadata: { name: 'digits' }, spec: { queue: 'default', priority: 'test' } } as unknown as JobDetail['document'];
  await show(<JobActions job={job({ allowed: OWNERS, state: 'waiting', document })} />);
  fireEvent.click(screen.getByText('Edit'));
  fireEvent.change(screen.getByLabelText('Priority'), { target: { value: '900' } });
  fireEvent.click(screen.getByText('Change'));
  await screen.findByText('Priority 900 is too high.');
  fireEvent.change(screen.getByLabelText('Priority'), { target: { value: '90' } });
  await waitFor(() => expect(screen.queryByText('Priority 900 is too high.')).toBeNull());
});

it('offers managers of its queue to move a job that waits', async () => {
  await show(<JobActions job={job({ allowed: ['order', 'stop'], state: 'waiting' })} />);
  expect(screen.getAllByRole('button').map((each) => each.textContent)).toEqual(['Move', 'Stop']);
  cleanup();
  await show(<JobActions job={job({ allowed: ['order', 'stop'] })} />);
  expect(screen.getAllByRole('button').map((each) => each.textContent)).toEqual(['Stop']);
});

it('opens how a job ended at the last line of what it printed', async () => {
  vi.spyOn(HTMLElement.prototype, 'scrollHeight', 'get').mockReturnValue(700);
  const failed = { role: 'main', index: 0, state: 'completed', endedAt: '2026-11-21T12:00:01.000Z', exit: { code: 1, phrase: 'Failed', class: 'unknown', message: '' } };
  vi.stubGlobal('fetch', async (url: string) =>
    String(url).includes('/logs') ? new Response('first\nlast\n') : Response.json({ items: [failed], next: null }),
  );
  await show(<ExitNote job={job({ state: 'failed', allowed: OWNERS })} />);
  const shown = await screen.findByLabelText('The last lines of main-0');
  expect(shown.textContent).toContain('last');
  expect(shown.scrollTop).toBe(700);
});
