// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, render, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { useState, type ReactNode } from 'react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Cell, Device, JobState, JobSummary, LineEntry } from '../api/types';
import { racks } from '../lib/cells';
import { ClusterMap } from './ClusterMap';
import { CommandLine } from './Copy';
import { JobTable, why } from './JobTable';
import { LogLine } from './LogLine';
import { inLine, NextInLine } from './NextInLine';
import { exitTone, Glyph, Status, taskWord } from './Status';

afterEach(cleanup);
beforeEach(() => {
  Element.prototype.scrollIntoView = vi.fn();
});

export function job(id: string, change: Partial<JobSummary> = {}): JobSummary {
  return {
    id,
    name: id,
    user: 'ada',
    queue: 'default',
    priority: 10,
    jobType: 'shell',
    state: 'running',
    createdAt: '2026-11-21T12:00:00.000Z',
    startedAt: '2026-11-21T12:00:01.000Z',
    endedAt: null,
    tasks: { total: 2, waiting: 0, running: 2, succeeded: 0, failed: 0, stopped: 0 },
    devices: 2,
    devicesHeld: 2,
    retries: 0,
    taskRetries: 0,
    exit: null,
    waiting: null,
    tags: [],
    array: null,
    ...change,
  };
}
const waits = (id: string, ahead: number, priority = 10) =>
  job(id, { state: 'waiting', priority, waiting: { code: 'no-cell-holds-gang', message: `${id} needs more`, ahead, possible: true } });

/** Shows a part of a page inside a router, and says where its links lead. */
async function show(page: () => ReactNode) {
  const root = createRootRoute();
  const at = createRoute({ getParentRoute: () => root, path: '/', component: page });
  const detail = createRoute({ getParentRoute: () => root, path: '/jobs/$ref', component: () => <p>the page of the job</p> });
  const router = createRouter({ routeTree: root.addChildren([at, detail]), history: createMemoryHistory({ initialEntries: ['/'] }) });
  await router.load();
  render(
    <QueryClientProvider client={new QueryClient()}>
      <RouterProvider router={router as never} />
    </QueryClientProvider>,
  );
  return router;
}

describe('a state', () => {
  const states: JobState[] = ['waiting', 'starting', 'running', 'stopping', 'succeeded', 'failed', 'stopped'];

  it('has a shape of its own', () => {
    const shapes = states.map((state) => render(<Glyph state={state} />).container.querySelector('svg')!.innerHTML);
    expect(new Set(shapes).size).toBe(states.length);
  });

  it.each(states)('%s is written as a word', (state) => {
    render(<Status state={state} />);
    expect(screen.getByText(state)).toBeDefined();
  });

  it.each([
    ['completed', { class: 'succeeded', code: 0 }, 'succeeded'],
    ['completed', { class: 'unknown', code: 1 }, 'failed'],
    ['running', null, 'running'],
    ['creation-requested', null, 'waiting'],
    ['deleting', null, 'stopping'],
    ['completed', { class: 'stopped', code: -210 }, 'stopped'],
    ['completed', { class: 'permanent', code: -1200 }, 'failed'],
  ])('of a task in %s with exit %j is %s', (state, exit, word) => expect(taskWord({ state, exit })).toBe(word));

  it.each([
    [{ class: 'unknown', code: 1 }, 'text-fail'],
    [{ class: 'transient', code: -111 }, 'text-fail'],
    [{ class: 'stopped', code: -210 }, 'text-muted'],
    [{ class: 'permanent', code: -220 }, 'text-muted'],
    [{ class: 'permanent', code: -1004 }, 'text-fail'],
    [{ class: 'succeeded', code: 0 }, 'text-muted'],
  ])('alarms with an end that nobody asked for: %j is %s', (exit, tone) => expect(exitTone(exit)).toBe(tone));
});

describe('the line of waiting jobs', () => {
  it('is in the order that the scheduler says', () => {
    expect(inLine([waits('c', 2), waits('a', 0), waits('b', 1)]).map(({ id }) => id)).toEqual(['a', 'b', 'c']);
  });

  it('has jobs that can never start as they are behind all others, and calls none of them the next', async () => {
    const huge = { ...waits('huge', 0, 100), waiting: { code: 'no-cell-holds-gang', message: 'huge is too large', ahead: 0, possible: false } };
    expect(inLine([huge, waits('small', 1)]).map(({ id }) => id)).toEqual(['small', 'huge']);
    const entry = { job: 'huge', position: 1, devices: 64 } as LineEntry;
    await show(() => <NextInLine jobs={[huge, waits('small', 1)]} line={[entry]} more={false} />);
    expect(screen.getByText('Next to start').nextElementSibling!.textContent).toContain('small');
    expect(screen.getByText('never').parentElement!.textContent).toContain('huge');
    cleanup();
    await show(() => <NextInLine jobs={[huge]} more={false} />);
    expect(screen.getByText('Never starts as it is')).toBeDefined();
    expect(screen.queryByText('Next to start')).toBeNull();
  });

  it('says why the first one waits', async () => {
    await show(() => <NextInLine jobs={[waits('b', 1), waits('a', 0)]} more={false} />);
    expect(screen.getByText('a needs more')).toBeDefined();
    expect(screen.getByRole('link', { name: 'b' })).toBeDefined();
  });

  it('says that nothing waits', async () => {
    await show(() => <NextInLine jobs={[]} more={false} />);
    expect(screen.getByText('Nothing waits.')).toBeDefined();
  });
});

describe('what is said beside a job', () => {
  it.each([
    [waits('a', 0), [], 'a needs more'],
    [job('a', { state: 'failed', exit: { code: 1, phrase: 'UserCommandExitWithError', class: 'unknown', message: 'no torch' } }), [], 'UserCommandExitWithError (1): no torch'],
    [job('a'), ['local/n1', 'local/n2'], 'n1, n2'],
    [job('a', { state: 'succeeded' }), [], ''],
  ])('%#', (of, nodes, said) => expect(why(of, nodes)).toBe(said));
});

function Table({ jobs }: { jobs: JobSummary[] }) {
  const [selected, setSelected] = useState('');
  return <JobTable jobs={jobs} scope="" selected={selected} onSelect={setSelected} onLight={() => undefined} where={new Map()} hidden={new Set()} chosen={new Set()} onChoose={() => undefined} />;
}

describe('the table of jobs', () => {
  it('is moved through with j and k and opened with Enter', async () => {
    const router = await show(() => <Table jobs={[job('one'), job('two'), job('three')]} />);
    const user = userEvent.setup();
    await user.keyboard('jjjk');
    expect(screen.getByRole('row', { selected: true }).dataset.job).toBe('two');
    await user.keyboard('{Enter}');
    expect(await screen.findByText('the page of the job')).toBeDefined();
    expect(router.state.location.pathname).toBe('/jobs/two');
  });

  it('keeps its rows in place under the pointer until the new ones are asked for', async () => {
    let add: () => void = () => undefined;
    await show(function Growing() {
      const [jobs, setJobs] = useState([job('old')]);
      add = () => setJobs([job('new'), job('old', { state: 'failed' })]);
      return <Table jobs={jobs} />;
    });
    const user = userEvent.setup();
    const names = () => screen.getAllByRole('row').flatMap((row) => row.dataset.job ?? []);
    await user.hover(screen.getByRole('link', { name: 'old' }));
    add();
    await user.click(await screen.findByRole('button', { name: /1 new/ }));
    expect(names()).toEqual(['new', 'old']);
  });
});

describe('the map', () => {
  const holder = { id: 'j1', name: 'digits', user: 'ada', role: 'worker', index: 0, share: null };
  const device = (index: number, held: boolean, healthy = true): Device => ({
    index, id: `n:${index}`, kind: 'gpu', model: '', memoryBytes: 0, healthy, healthReason: healthy ? '' : 'too hot',
    described: true, cells: {}, node: 'local/n', parent: -1, free: healthy && !held, job: held ? holder : null, others: [],
  });
  const node: Cell = { level: 'node', name: 'local/n', devices: 4, free: 2, ready: true, cells: [], holds: [device(0, true), device(1, true), device(2, false), device(3, false, false)] };
  const tree: Cell = { level: 'rack', name: 'rack1', devices: 4, free: 2, ready: true, cells: [node], holds: [] };

  it('leads from a run of devices to the job that holds them', async () => {
    await show(() => <ClusterMap racks={racks(tree)} />);
    const link = screen.getByRole('link', { name: 'digits, ada: worker-0 on n, device 0–1' });
    expect(link.getAttribute('href')).toBe('/jobs/j1');
  });

  it('says in words what is free and what is broken', async () => {
    await show(() => <ClusterMap racks={racks(tree)} />);
    const row = within(screen.getByRole('group', { name: 'n: 2 of 4 devices free' }));
    expect(row.getByText('n device 2: free')).toBeDefined();
    expect(row.getByText('n device 3: unhealthy (too hot)')).toBeDefined();
  });

  it('says who shares a device, and which cannot be given for the sake of its slices', async () => {
    const part = { ...holder, share: { computePercent: 50, memoryPercent: 25 } };
    const shared = { ...device(0, true), free: false, job: part, others: [{ ...part, name: 'other', index: 1 }] };
    const cut = { ...device(1, false), free: false, parent: -1 };
    const slice = { ...device(2, false), free: false, parent: 0 };
    await show(() => <ClusterMap racks={racks({ ...tree, cells: [{ ...node, holds: [shared, cut, slice] }] })} />);
    expect(
      screen.getByRole('link', { name: 'digits, ada: worker-0 50 %, memory 25 % on n, device 0, beside other worker-1 50 %, memory 25 %' }),
    ).toBeDefined();
    expect(screen.getByText('n device 1: in use in slices')).toBeDefined();
    expect(screen.getByText('n device 2: the whole device is in use')).toBeDefined();
  });
});

it('marks what was searched for in a line of a log, whatever its case', () => {
  const { container } = render(<LogLine line={{ text: 'worker-0 | Loss 0.5, loss 0.4' }} find="loss" prefixed />);
  expect([...container.querySelectorAll('mark')].map((mark) => mark.textContent)).toEqual(['Loss', 'loss']);
  expect(container.textContent).toBe('worker-0 | Loss 0.5, loss 0.4');
});

it('copies a command', async () => {
  const user = userEvent.setup();
  render(<CommandLine line="corral ls" />);
  await user.click(screen.getByRole('button'));
  expect(await screen.findByText('copied')).toBeDefined();
  expect(await navigator.clipboard.readText()).toBe('corral ls');
});

it('shows an array as one line that leads to its jobs', async () => {
  const array = { name: 'seeds', tag: 'array:s0', states: { waiting: 97, running: 3 } };
  await show(() => (
    <JobTable jobs={[job('s0', { name: 'seeds-0', array })]} scope="" selected="" onSelect={vi.fn()} onLight={vi.fn()} where={new Map()} hidden={new Set()} chosen={new Set()} onChoose={() => undefined} />
  ));
  const link = screen.getByRole('link', { name: /seeds.*100 jobs/ });
  expect(link.getAttribute('href')).toContain('tag=array');
  expect(screen.getAllByText('3 running, 97 waiting').length).toBeGreaterThan(0);
  expect(screen.queryByText('seeds-0')).toBeNull();
});
