/** The questions about gangs that hang, and about the pace of their tasks. */

import { queryOptions } from '@tanstack/react-query';
import { address, call, part } from './client';
import type { HangList, RankScores } from './types';

const SLOWLY = 15_000;

/** How fast the tasks of a running job make steps beside each other. */
export const ranks = (job: string) =>
  queryOptions({
    queryKey: ['jobs', 'ranks', job],
    queryFn: ({ signal }) => call<RankScores>(`/jobs/${part(job)}/ranks`, { signal }),
    staleTime: SLOWLY,
    refetchInterval: SLOWLY,
    retry: false,
  });

/** The times that a job hung; `going` is whether it still runs. */
export const hangs = (job: string, going: boolean) =>
  queryOptions({
    queryKey: ['jobs', 'hangs', job],
    queryFn: ({ signal }) => call<HangList>(`/jobs/${part(job)}/hangs`, { signal }),
    staleTime: SLOWLY,
    refetchInterval: going ? 2 * SLOWLY : false,
    retry: false,
  });

/** The address of a bundle of a hang, for a link that downloads it. */
export const bundleAddress = (job: string, bundle: string) => address(`/jobs/${part(job)}/hangs/${part(bundle)}`);
