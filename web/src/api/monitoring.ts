/** What is seen of the cluster: alerts and silences, the health of nodes, use, charges and budgets. */

import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { serverNow } from '../lib/clock';
import { call, part } from './client';
import type { Alert, Budget, Charge, ChargePage, EfficiencyReport, FairnessReport, Health, HealthEntry, IdleJob, Page, PastAlert, Silence, UsageReport } from './types';

const SLOWLY = 15_000;
/** How long the server keeps the history of alerts. */
const KEPT_MS = 90 * 86_400_000;
/** Pages of charges that are read for one picture or file; a page has at least 2,000 charges, unless it is the last. */
const MOST_PAGES = 50;

interface List<Item> {
  items: Item[];
}

/** All alerts that the reader may see; under `alerts`, which an alert that begins or ends marks stale. */
export const alerts = queryOptions({
  queryKey: ['alerts', 'list'],
  queryFn: ({ signal }) => call<List<Alert>>('/alerts', { signal }),
  refetchInterval: SLOWLY,
});

/** The alerts that fired within 90 days, the latest first; under `alerts`, as they begin and end with those of now. */
export const alertHistory = infiniteQueryOptions({
  queryKey: ['alerts', 'history'],
  queryFn: ({ pageParam, signal }) => call<Page<PastAlert>>('/alerts/history', { query: { from: new Date(serverNow() - KEPT_MS).toISOString(), limit: 20, after: pageParam }, signal }),
  initialPageParam: '',
  getNextPageParam: (page) => page.next,
});

/** The alerts that meet all matchers; refused for what is no matcher. */
export const alertsOf = (matchers: readonly string[]) =>
  queryOptions({
    queryKey: ['alerts', 'of', matchers],
    queryFn: ({ signal }) => call<List<Alert>>('/alerts', { query: { match: matchers }, signal }),
    enabled: matchers.length > 0,
    retry: false,
  });

export const silences = (admin: boolean) =>
  queryOptions({
    queryKey: ['alerts', 'silences'],
    queryFn: ({ signal }) => call<List<Silence>>('/alerts/silences', { signal }),
    enabled: admin,
    refetchInterval: SLOWLY,
  });

/** The nodes with signs of trouble, the worst first; under `cluster`, as the nodes themselves. */
export const health = queryOptions({
  queryKey: ['cluster', 'health'],
  queryFn: ({ signal }) => call<Page<Health>>('/node-health', { signal }),
  refetchInterval: SLOWLY,
});

export const healthPath = (node: string) => `/nodes/${node.split('/').map(part).join('/')}/health`;

export const healthHistory = (node: string) =>
  infiniteQueryOptions({
    queryKey: ['cluster', 'health', node],
    queryFn: ({ pageParam, signal }) => call<Page<HealthEntry>>(healthPath(node), { query: { limit: 10, after: pageParam }, signal }),
    initialPageParam: '',
    getNextPageParam: (page) => page.next,
    refetchInterval: SLOWLY,
  });

/** Whose use is asked for, and of which time: RFC 3339 times or days in UTC. */
export interface Asked {
  from: string;
  to: string;
  user?: string;
  queue?: string;
}

export const usage = (by: string, asked: Asked) =>
  queryOptions({
    queryKey: ['usage', by, asked],
    queryFn: ({ signal }) => call<UsageReport>('/usage', { query: { by, ...asked }, signal }),
    placeholderData: keepPreviousData,
    retry: false,
  });

/** What jobs asked for and used; the figures of many jobs are read for it, so it is not asked again by itself. */
export const efficiency = (asked: Asked) =>
  queryOptions({
    queryKey: ['usage', 'efficiency', asked],
    queryFn: ({ signal }) => call<EfficiencyReport>('/efficiency', { query: { ...asked }, signal }),
    placeholderData: keepPreviousData,
    staleTime: SLOWLY,
    retry: false,
  });

/** What queues were owed and got in a week such as `2026-W48`; '' is the last whole one. */
export const fairness = (week: string) =>
  queryOptions({
    queryKey: ['usage', 'fairness', week],
    queryFn: ({ signal }) => call<FairnessReport>('/usage/fairness', { query: { week }, signal }),
    placeholderData: keepPreviousData,
    staleTime: SLOWLY,
    retry: false,
  });

export interface Charges {
  currency: string;
  items: Charge[];
  /** The time from which on there are further charges; '' after the last. */
  next: string;
}

/** The charges of a period, page by page. */
export async function allCharges({ from, ...asked }: Asked, signal?: AbortSignal): Promise<Charges> {
  const found: Charges = { currency: '', items: [], next: from };
  for (let page = 0; page < MOST_PAGES && (page === 0 || found.next); page += 1) {
    const answer: ChargePage = await call('/usage/charges', { query: { from: found.next, ...asked }, signal });
    found.items.push(...answer.items);
    found.currency = answer.currency;
    found.next = answer.next;
  }
  return found;
}

export const charges = (asked: Asked, wanted: boolean) =>
  queryOptions({
    queryKey: ['usage', 'charges', asked],
    queryFn: ({ signal }) => allCharges(asked, signal),
    placeholderData: keepPreviousData,
    enabled: wanted,
    retry: false,
  });

export const budgets = queryOptions({
  queryKey: ['usage', 'budgets'],
  queryFn: ({ signal }) => call<List<Budget>>('/budgets', { signal }),
  refetchInterval: SLOWLY,
});

/** Jobs that leave their devices idle, or did within a week; under `idle`, which their events mark stale. */
export const idleJobs = queryOptions({
  queryKey: ['idle', 'list'],
  queryFn: ({ signal }) => call<List<IdleJob>>('/idle', { signal }),
  refetchInterval: SLOWLY,
});

/** What is said of one job's idle devices; nothing of most. */
export const idleJob = (job: string, going: boolean) =>
  queryOptions({
    queryKey: ['idle', job],
    queryFn: ({ signal }) => call<List<IdleJob>>('/idle', { query: { job }, signal }),
    select: ({ items }) => items.find((each) => each.job === job) ?? null,
    refetchInterval: going ? SLOWLY : false,
    retry: false,
  });
