/** What the scheduler knows: shares of queues, the waiting list, and cells with their owners (`corral/model/queue_views.py`). */

import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { serverNow } from '../lib/clock';
import { ApiError, call, part } from './client';
import type {
  CellTree, DeviceTimeline, EstimateReport, JobCache, JobEfficiency, Ledger, Page, PreflightReport, QueueHistory, Receipt, RunningShadow, SeriesAnswer,
  ShadowComparisons, ShadowReport, WaitingLine,
} from './types';

const SLOWLY = 15_000;
/** Cells and devices in one answer; the marks of what is beyond it are left out of the map. */
const MARKED = 5_000;

export const line = (queue = '') =>
  infiniteQueryOptions({
    queryKey: ['jobs', 'line', queue],
    queryFn: ({ pageParam, signal }) =>
      call<WaitingLine>('/line', { query: { queue: queue || undefined, limit: 100, after: pageParam }, signal }),
    initialPageParam: '',
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
    refetchInterval: SLOWLY,
  });

export const cells = queryOptions({
  queryKey: ['cluster', 'cells'],
  queryFn: ({ signal }) => call<CellTree>('/cells', { query: { depth: 12, limit: MARKED }, signal }),
  refetchInterval: SLOWLY,
});

/** Which jobs were on devices, and are expected to be, some hours back and ahead: of one node, or by pages of nodes. */
export const deviceTimeline = (node: string, hours: number) =>
  infiniteQueryOptions({
    queryKey: ['cluster', 'timeline', node, hours],
    queryFn: ({ pageParam, signal }) => {
      const [from, to] = [-hours, hours].map((each) => new Date(serverNow() + each * 3_600_000).toISOString());
      return call<DeviceTimeline>('/devices/timeline', { query: { node: node || undefined, from, to, after: pageParam }, signal });
    },
    initialPageParam: '',
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
    refetchInterval: 2 * SLOWLY,
  });

/** Which jobs were on the devices of a node in the last hours. */
export const deviceHistory = (node: string, hours: number) =>
  queryOptions({
    queryKey: ['cluster', 'history', node, hours],
    queryFn: ({ signal }) => {
      // A minute more: the server's time is known to seconds, and no event would ask again for a stay that begins after the end.
      const [from, to] = [-hours * 3_600_000, 60_000].map((each) => new Date(serverNow() + each).toISOString());
      return call<DeviceTimeline>('/devices/timeline', { query: { node, from, to }, signal });
    },
    staleTime: SLOWLY,
    retry: false,
  });

export const ledger = (queue: string) =>
  queryOptions({
    queryKey: ['cluster', 'ledger', queue],
    queryFn: ({ signal }) => call<Ledger>(`/queues/${part(queue)}/ledger`, { signal }),
    refetchInterval: SLOWLY,
  });

/** Waits, use, lent and borrowed of a queue by week. */
export const queueHistory = (queue: string) =>
  queryOptions({
    queryKey: ['usage', 'history', queue],
    queryFn: ({ signal }) => call<QueueHistory>(`/queues/${part(queue)}/history`, { signal }),
    staleTime: 4 * SLOWLY,
    retry: false,
  });

export const estimates = (queue: string, days: string) =>
  queryOptions({
    queryKey: ['jobs', 'estimates', queue, days],
    queryFn: ({ signal }) => call<EstimateReport>('/estimates', { query: { queue: queue || undefined, days }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: SLOWLY,
  });

/** What a job reported, from one time to another; `going` is whether more may come. */
/** The caller's own comparisons of policies. */
export const comparisons = queryOptions({
  queryKey: ['cluster', 'comparisons'],
  queryFn: ({ signal }) => call<ShadowComparisons>('/policy-shadow', { signal }),
});

/** Milliseconds between two looks at a report that is being made. */
const OFTEN = 1_500;

/** The candidate that goes on beside the policy in force, or the last one that did; null: none was begun. */
export const runningShadow = queryOptions({
  queryKey: ['running-shadow'],
  queryFn: async ({ signal }) => {
    try {
      return await call<RunningShadow>('/running-shadow', { signal });
    } catch (error) {
      if (error instanceof ApiError && error.code === 'no-running-shadow') return null;
      throw error;
    }
  },
  refetchInterval: ({ state }) => (state.data?.state === 'running' && state.data.nextAt === null ? OFTEN : SLOWLY),
});

/** Its last report, which goes up to `reportedAt`. */
export const runningReport = ({ askedAt, reportedAt }: RunningShadow) =>
  queryOptions({
    queryKey: ['running-shadow', 'report', askedAt, reportedAt],
    queryFn: ({ signal }) => call<ShadowReport>('/running-shadow/report', { signal }),
    enabled: reportedAt !== null,
    placeholderData: keepPreviousData,
    staleTime: Infinity,
  });

export const series = (job: string, from: string, to: string | null, going: boolean) =>
  queryOptions({
    queryKey: ['series', job, to],
    queryFn: ({ signal }) => call<SeriesAnswer>('/series', { query: { job, from, to: to ?? undefined }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: going ? SLOWLY : false,
    retry: false,
  });

/** What a job asked for and used; `going` is whether it still runs. */
export const efficiency = (job: string, going: boolean) =>
  queryOptions({
    queryKey: ['jobs', 'efficiency', job],
    queryFn: ({ signal }) => call<JobEfficiency>(`/jobs/${part(job)}/efficiency`, { signal }),
    staleTime: SLOWLY,
    refetchInterval: going ? 4 * SLOWLY : false,
    retry: false,
  });

/** What its tasks made of the cache of compiled code; `going` is whether it still runs. */
export const cache = (job: string, going: boolean) =>
  queryOptions({
    queryKey: ['jobs', 'cache', job],
    queryFn: ({ signal }) => call<JobCache>(`/jobs/${part(job)}/cache`, { signal }),
    staleTime: SLOWLY,
    refetchInterval: going ? SLOWLY : false,
    retry: false,
  });

/** What its tasks checked before their commands began. */
export const preflight = (job: string, going: boolean) =>
  queryOptions({
    queryKey: ['jobs', 'preflight', job],
    queryFn: ({ signal }) => call<PreflightReport>(`/jobs/${part(job)}/preflight`, { signal }),
    staleTime: SLOWLY,
    refetchInterval: going ? SLOWLY : false,
    retry: false,
  });

export const receipts = (queue = '') =>
  infiniteQueryOptions({
    queryKey: ['jobs', 'receipts', queue],
    queryFn: ({ pageParam, signal }) =>
      call<Page<Receipt>>('/receipts', { query: { queue: queue || undefined, limit: 50, after: pageParam }, signal }),
    initialPageParam: '',
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
    refetchInterval: SLOWLY,
  });
