/** What the scheduler knows: shares of queues, the waiting list, and cells with their owners (`corral/model/queue_views.py`). */

import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { call, part } from './client';
import type { CellTree, EstimateReport, JobCache, JobEfficiency, Ledger, Page, Receipt, SeriesAnswer, ShadowComparisons, WaitingLine } from './types';

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

export const ledger = (queue: string) =>
  queryOptions({
    queryKey: ['cluster', 'ledger', queue],
    queryFn: ({ signal }) => call<Ledger>(`/queues/${part(queue)}/ledger`, { signal }),
    refetchInterval: SLOWLY,
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
