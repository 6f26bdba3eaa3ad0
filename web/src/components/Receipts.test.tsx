// @vitest-environment happy-dom
import { createMemoryHistory, createRootRoute, createRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, describe, expect, it } from 'vitest';
import type { Node, Receipt } from '../api/types';
import { closed } from '../pages/Nodes';
import { deviceTime, Receipts } from './Receipts';

afterEach(cleanup);

const receipt: Receipt = {
  id: 'a.1',
  job: 'a',
  name: 'digits',
  user: 'ada',
  queue: 'research',
  attempt: 0,
  rule: 'priority',
  message: 'evaluate (production) has higher priority',
  at: '2026-11-21T12:00:00.000Z',
  state: 'returned',
  devices: 8,
  tasks: [],
  byJob: 'b',
  byQueue: 'production',
  byUser: 'dina',
  costDeviceSeconds: 9000,
  backAt: null,
  returnedAt: '2026-11-21T12:04:00.000Z',
  awaySeconds: 240,
};

async function show(receipts: Receipt[]) {
  const root = createRootRoute();
  const at = createRoute({ getParentRoute: () => root, path: '/', component: () => <Receipts receipts={receipts} /> });
  const router = createRouter({ routeTree: root.addChildren([at]), history: createMemoryHistory({ initialEntries: ['/'] }) });
  await router.load();
  render(<RouterProvider router={router as never} />);
}

describe('a receipt', () => {
  it('says to whom, under which rule, at what cost, and when the job was back', async () => {
    await show([receipt]);
    for (const text of ['priority', /evaluate \(production\)/, '8 devices', '2.5 device-hours', /4 ?m/]) expect(screen.getByText(text)).toBeDefined();
    expect(screen.getByRole('link', { name: 'its job' }).getAttribute('href')).toBe('/jobs/b');
  });

  it('says so while the job is away, and when it never came back', async () => {
    await show([{ ...receipt, state: 'away', returnedAt: null }, { ...receipt, id: 'a.2', state: 'ended', tasks: ['worker-3'] }]);
    for (const text of ['not yet: unknown when', 'never: the job ended', 'worker-3']) expect(screen.getByText(text)).toBeDefined();
  });

  it('says when the job is likely back, and what it waits for', async () => {
    await show([
      { ...receipt, state: 'away', returnedAt: null, backAt: new Date(Date.now() + 3_600_000).toISOString() },
      { ...receipt, id: 'a.3', state: 'away', returnedAt: null, backAt: receipt.at.replace('2026', '2020') },
      { ...receipt, id: 'a.2', state: 'away', returnedAt: null, rule: 'suspended' },
    ]);
    expect(screen.getByText(/^not yet: likely in (1 ?h|59 ?m|60 ?m)/)).toBeDefined();
    for (const text of ['not yet: later than thought', 'when it is resumed']) expect(screen.getByText(text)).toBeDefined();
  });

  it.each([
    [0, 'nothing'],
    [42, '42 device-seconds'],
    [90, '1.5 device-minutes'],
    [36_000, '10 device-hours'],
  ])('of %d device-seconds costs %s', (seconds, said) => expect(deviceTime(seconds)).toBe(said));
});

describe('a closed node', () => {
  const cordon = { by: 'ada', why: 'new cables', at: receipt.at, graceSeconds: null };
  it.each([
    ['', 3, '⊘ cordoned by ada: new cables'],
    ['now', 3, '⊘ draining (3 tasks left) by ada: new cables'],
    ['after-jobs', 3, '⊘ draining after its jobs (3 tasks left) by ada: new cables'],
    ['now', 0, '⊘ drained by ada: new cables'],
  ] as const)('with drain %j and %d tasks', (drain, tasks, said) => expect(closed({ tasks } as Node, { ...cordon, drain })).toBe(said));
});
