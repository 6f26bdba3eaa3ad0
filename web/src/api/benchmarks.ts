/** Kept results of benchmarks; for administrators. */

import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { call } from './client';
import type { BenchmarkComparison, BenchmarkHistory, BenchmarkOverview, BenchmarkStandings } from './types';

export const overview = queryOptions({
  queryKey: ['benchmarks', 'overview'],
  queryFn: ({ signal }) => call<BenchmarkOverview>('/benchmarks', { signal }),
  retry: false,
});

/** The last values of a node, or of a metric on all nodes. */
export const standing = (asked: { node?: string; metric?: string }) =>
  queryOptions({
    queryKey: ['benchmarks', 'standing', asked],
    queryFn: ({ signal }) => call<BenchmarkStandings>('/benchmarks/standing', { query: { ...asked }, signal }),
    enabled: Boolean(asked.node || asked.metric),
    placeholderData: keepPreviousData,
    retry: false,
  });

export const history = (metric: string, node: string) =>
  queryOptions({
    queryKey: ['benchmarks', 'history', metric, node],
    queryFn: ({ signal }) => call<BenchmarkHistory>('/benchmarks/history', { query: { metric, node: node || undefined }, signal }),
    enabled: Boolean(metric),
    placeholderData: keepPreviousData,
    retry: false,
  });

export const comparison = (before: string, after: string) =>
  queryOptions({
    queryKey: ['benchmarks', 'comparison', before, after],
    queryFn: ({ signal }) => call<BenchmarkComparison>('/benchmarks/comparison', { query: { before, after }, signal }),
    enabled: Boolean(before && after),
    placeholderData: keepPreviousData,
    retry: false,
  });
