/** Who may use what: accounts, groups and storages (`corral/model/views.py`), and the limits that managers of queues set. */

import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { address, call, part } from './client';
import { documentPath } from './queries';
import type { DocumentView, FilePreview, FileView, GroupView, OutputView, Page, QueueLimits, StorageView, UserView } from './types';

/** Accounts that are shown at once; a search asks the server for no less. */
const LONGEST = 1_000;
const FILES = 200;

/** Under `configuration`, which a change of any document marks stale. */
export const storages = queryOptions({
  queryKey: ['configuration', 'storages'],
  queryFn: ({ signal }) => call<Page<StorageView>>('/storages', { signal }),
});

/** The API path below which the files of a storage, or of an output of a job, are. */
export const ofStorage = (name: string) => `/storages/${part(name)}`;
export const ofOutput = (job: string, index: number) => `/jobs/${part(job)}/outputs/${index}`;

export const files = (place: string, path: string) =>
  infiniteQueryOptions({
    queryKey: ['files', place, path],
    queryFn: ({ pageParam, signal }) => call<Page<FileView>>(`${place}/files`, { query: { path, limit: FILES, after: pageParam }, signal }),
    initialPageParam: '',
    getNextPageParam: (page) => page.next,
  });

export const preview = (place: string, path: string) =>
  queryOptions({
    queryKey: ['files', place, path, 'preview'],
    queryFn: ({ signal }) => call<FilePreview>(`${place}/preview`, { query: { path }, signal }),
  });

export const outputs = (job: string) =>
  queryOptions({
    queryKey: ['job', job, 'outputs'],
    queryFn: ({ signal }) => call<Page<OutputView>>(`/jobs/${part(job)}/outputs`, { signal }),
  });

export const filePath = (place: string) => `${place}/file`;
export const picturePath = (place: string) => `${place}/picture`;
export const fileAddress = (place: string, path: string) => address(filePath(place), { path });
export const pictureAddress = (place: string, path: string) => address(picturePath(place), { path });

/** A document as it is in force, with its revision. */
export const currentDocument = (kind: string, name: string) =>
  queryOptions({
    queryKey: ['configuration', kind, name, 'current'],
    queryFn: ({ signal }) => call<DocumentView>(documentPath(kind, name), { signal }),
  });

export const groups = queryOptions({
  queryKey: ['groups'],
  queryFn: ({ signal }) => call<Page<GroupView>>('/groups', { signal }),
});

/** Every account, in as few pages as the API gives: they are searched by name, group and address. */
export const users = queryOptions({
  queryKey: ['users'],
  queryFn: async ({ signal }) => {
    const found: UserView[] = [];
    let after: string | null = '';
    while (after !== null) {
      const page: Page<UserView> = await call('/users', { query: { limit: LONGEST, after }, signal });
      found.push(...page.items);
      after = page.next;
    }
    return found;
  },
});

export const queueLimits = (queue: string) =>
  queryOptions({
    queryKey: ['cluster', 'limits', queue],
    queryFn: ({ signal }) => call<QueueLimits>(`/queues/${part(queue)}/limits`, { signal }),
  });
