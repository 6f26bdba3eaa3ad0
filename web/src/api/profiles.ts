/** Profiles of a job: those that are kept, what they show, and how one is taken. */

import { queryOptions } from '@tanstack/react-query';
import { address, call, part } from './client';
import type { ProfileComparison, ProfileList, ProfileReport, ProfileView } from './types';

const SOON = 1_000;
const SLOWLY = 15_000;

export interface Wish {
  what: ProfileView['what'];
  seconds: number;
  tasks: string[];
}

export const isGoing = (profile: ProfileView) => profile.state === 'taking' || profile.state === 'reading';

/** The profiles of a job, newest first; asked for every second while one is being taken. */
export const profiles = (job: string) =>
  queryOptions({
    queryKey: ['profiles', 'of', job],
    queryFn: ({ signal }) => call<ProfileList>('/profiles', { query: { job }, signal }),
    refetchInterval: ({ state }) => (state.data?.items.some(isGoing) ? SOON : SLOWLY),
  });

/** What a profile shows; it never changes. */
export const report = (profile: string) =>
  queryOptions({
    queryKey: ['profiles', 'report', profile],
    queryFn: ({ signal }) => call<ProfileReport>(`/profiles/${part(profile)}/report`, { signal }),
    staleTime: Infinity,
    retry: false,
  });

export const comparison = (before: string, after: string) =>
  queryOptions({
    queryKey: ['profiles', 'comparison', before, after],
    queryFn: ({ signal }) => call<ProfileComparison>(`/profiles/${part(after)}/comparison`, { query: { before }, signal }),
    staleTime: Infinity,
    retry: false,
  });

export const take = (job: string, wish: Wish) => call<ProfileView>(`/jobs/${part(job)}/profiles`, { method: 'POST', json: wish });

export const remove = (profile: string) => call<void>(`/profiles/${part(profile)}`, { method: 'DELETE' });

/** The address of a file of a profile, for a link that downloads it. */
export const fileAddress = (profile: string, name: string) => address(`/profiles/${part(profile)}/files/${part(name)}`);
