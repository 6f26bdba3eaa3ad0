/** What can be asked, under keys that `live.tsx` marks stale: `jobs`, `job` + id, `cluster`, `configuration`. */

import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { PRIORITIES } from '../lib/cli';
import { fileOf } from './copy';
import { call, part, type CallOptions } from './client';
import type {
  AccountUse,
  Applied,
  Cell,
  Channel,
  ClusterUse,
  DocumentDiff,
  DocumentSummary,
  DocumentView,
  EventRecord,
  Explanation,
  JobDetail,
  JobSummary,
  Me,
  Node,
  Notification,
  Oidc,
  OpenedService,
  Page,
  Queue,
  Readiness,
  SavedFilter,
  Services,
  Task,
  Token,
  Top,
  UserView,
} from './types';

/** Some facts change without an event (time passes, a node is seen again): everything live is asked for this often too. */
const SLOWLY = 15_000;
/** The longest page that the API gives. */
const LONGEST = 1_000;

/** Jobs that the list begins with; who wants more gets the longest page. */
const FIRST_PAGE = 60;
/** Tasks that a job's page begins with. */
const FIRST_TASKS = 200;
/** Jobs that the command palette shows. */
const FOUND = 30;
/** Jobs that one file of the list has at most. */
const MOST_IN_FILE = 20_000;

export interface JobFilter {
  state?: string;
  user?: string;
  queue?: string;
  q?: string;
  tag?: string;
  order?: string;
  /** A priority class, with those above it; `oppo` is what is below 0. */
  priority?: string;
  /** What the list gathers jobs by, `user` or `sweep`; no part of the question. */
  group?: string;
}

/** The filter as the API is asked for it. */
const asked = ({ group: _, priority, ...filter }: JobFilter) => ({ ...filter, ...PRIORITIES[priority ?? ''], state: filter.state?.split(',') });

export const me = queryOptions({ queryKey: ['me'], queryFn: () => call<Me>('/me'), staleTime: Infinity, retry: false });

/** What the server says is wrong with itself; it is asked without a session, and answers 503 in the same words. */
export const readiness = queryOptions({
  queryKey: ['readiness'],
  queryFn: async ({ signal }) => (await (await fetch('/readyz', { signal })).json()) as Readiness,
  refetchInterval: SLOWLY,
  retry: false,
});

export const oidc = queryOptions({ queryKey: ['oidc'], queryFn: () => call<Oidc>('/oidc'), staleTime: Infinity });

export const jobs = (filter: JobFilter) =>
  infiniteQueryOptions({
    queryKey: ['jobs', 'list', filter],
    queryFn: ({ pageParam, signal }) =>
      call<Page<JobSummary>>('/jobs', {
        query: { ...asked(filter), arrays: filter.tag || filter.group === 'sweep' ? undefined : 'true', limit: pageParam ? LONGEST : FIRST_PAGE, after: pageParam },
        signal,
      }),
    initialPageParam: '',
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
    refetchInterval: SLOWLY,
  });

/** The filters of the list that the reader saved. */
export const savedFilters = queryOptions({
  queryKey: ['saved-filters'],
  queryFn: ({ signal }) => call<Page<SavedFilter>>('/account/filters', { signal }),
});

/** Every job that matches, arrays job by job; `cut` where there are more than a file has. */
export async function everyJob(filter: JobFilter): Promise<{ items: JobSummary[]; cut: boolean }> {
  const items: JobSummary[] = [];
  let after: string | null = '';
  while (after !== null && items.length < MOST_IN_FILE) {
    const page: Page<JobSummary> = await call('/jobs', { query: { ...asked(filter), limit: LONGEST, after } });
    items.push(...page.items);
    after = page.next;
  }
  return { items, cut: after !== null };
}

/** The first jobs that a text finds, newest first; of one user where a user is named. */
export const jobsCalled = (q: string, user: string, enabled: boolean) =>
  queryOptions({
    queryKey: ['jobs', 'called', q, user],
    queryFn: ({ signal }) => call<Page<JobSummary>>('/jobs', { query: { q, user, limit: FOUND }, signal }),
    enabled,
    placeholderData: keepPreviousData,
  });

/** Jobs of one user that Home reads at once. */
const OF_ONE = 100;

/** What a user has running or waiting. */
export const liveJobsOf = (user: string) =>
  queryOptions({
    queryKey: ['jobs', 'live', user],
    queryFn: ({ signal }) =>
      call<Page<JobSummary>>('/jobs', { query: { user, state: ['waiting', 'starting', 'running', 'stopping'], limit: OF_ONE }, signal }),
    enabled: user !== '',
    refetchInterval: SLOWLY,
  });

/** A user's jobs that ended last. */
export const endedJobsOf = (user: string) =>
  queryOptions({
    queryKey: ['jobs', 'ended', user],
    queryFn: ({ signal }) => call<Page<JobSummary>>('/jobs', { query: { user, order: 'ended', limit: OF_ONE }, signal }),
    enabled: user !== '',
    refetchInterval: SLOWLY,
  });

export const waitingJobs = queryOptions({
  queryKey: ['jobs', 'waiting'],
  queryFn: ({ signal }) =>
    call<Page<JobSummary>>('/jobs', { query: { state: 'waiting', order: 'priority', limit: 200 }, signal }),
  refetchInterval: SLOWLY,
});

/** What waits in one queue, the highest priority first. */
export const waitingIn = (queue: string) =>
  queryOptions({
    queryKey: ['jobs', 'waiting', queue],
    queryFn: ({ signal }) =>
      call<Page<JobSummary>>('/jobs', { query: { state: 'waiting', queue, order: 'priority', limit: 500 }, signal }),
  });

export const job = (ref: string) =>
  queryOptions({
    queryKey: ['job', ref, 'detail'],
    queryFn: ({ signal }) => call<JobDetail>(`/jobs/${part(ref)}`, { signal }),
    refetchInterval: SLOWLY,
  });

/** The file that a job was submitted as; null where none is kept, or none for who asks. */
export const jobFile = (ref: string) =>
  queryOptions({
    queryKey: ['job', ref, 'file'],
    queryFn: ({ signal }) => fileOf(ref, signal),
    staleTime: Infinity,
  });

export const tasks = (ref: string, query: { role?: string; state?: string } = {}) =>
  infiniteQueryOptions({
    queryKey: ['job', ref, 'tasks', query],
    queryFn: ({ pageParam, signal }) =>
      call<Page<Task>>(`/jobs/${part(ref)}/tasks`, { query: { ...query, limit: pageParam ? LONGEST : FIRST_TASKS, after: pageParam }, signal }),
    initialPageParam: '',
    getNextPageParam: (page) => page.next,
  });

/** Every task of a job in as few pages as the API gives, which a search through thousands needs. */
export const allTasks = (ref: string) =>
  queryOptions({
    queryKey: ['job', ref, 'all-tasks'],
    queryFn: async ({ signal }) => {
      const found: Task[] = [];
      let after: string | null = '';
      while (after !== null) {
        const page: Page<Task> = await call(`/jobs/${part(ref)}/tasks`, { query: { limit: LONGEST, after }, signal });
        found.push(...page.items);
        after = page.next;
      }
      return found;
    },
  });

/** The services of a job that a browser may open. */
export const services = (ref: string) =>
  queryOptions({
    queryKey: ['job', ref, 'services'],
    queryFn: ({ signal }) => call<Services>(`/jobs/${part(ref)}/services`, { signal }),
  });

/** An address that opens a service once: it is asked for once, and not kept. */
export const openedService = (ref: string, task: string, port: string) =>
  queryOptions({
    queryKey: ['opened-service', ref, task, port],
    queryFn: () => {
      const at = task.lastIndexOf('-');
      const where = [task.slice(0, at), task.slice(at + 1), port].map(part).join('/');
      return call<OpenedService>(`/jobs/${part(ref)}/services/${where}`, { method: 'POST' });
    },
    staleTime: Infinity,
    gcTime: 0,
    retry: false,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });

export const events = (ref: string) =>
  infiniteQueryOptions({
    queryKey: ['job', ref, 'events'],
    queryFn: ({ pageParam, signal }) =>
      call<Page<EventRecord>>(`/jobs/${part(ref)}/events`, { query: { limit: 500, after: pageParam }, signal }),
    initialPageParam: '',
    getNextPageParam: (page) => page.next,
  });

export const explanation = (ref: string, wanted: boolean) =>
  queryOptions({
    queryKey: ['job', ref, 'explain'],
    queryFn: ({ signal }) => call<Explanation>(`/jobs/${part(ref)}/explain`, { signal }),
    enabled: wanted,
    refetchInterval: SLOWLY,
  });

export const cluster = queryOptions({
  queryKey: ['cluster', 'tree'],
  queryFn: ({ signal }) => call<Cell>('/cluster', { signal }),
  refetchInterval: SLOWLY,
});

export const top = queryOptions({
  queryKey: ['cluster', 'top'],
  queryFn: ({ signal }) => call<Top>('/top', { signal }),
  refetchInterval: SLOWLY,
});

export const nodes = infiniteQueryOptions({
  queryKey: ['cluster', 'nodes'],
  queryFn: ({ pageParam, signal }) => call<Page<Node>>('/nodes', { query: { limit: 200, after: pageParam }, signal }),
  initialPageParam: '',
  getNextPageParam: (page) => page.next,
  refetchInterval: SLOWLY,
});

/** The queues and applications of clusters that Corral shares with others, such as YARN's; [] where there are none. */
export const clusterUse = queryOptions({
  queryKey: ['cluster', 'use'],
  queryFn: ({ signal }) => call<Page<ClusterUse>>('/cluster/use', { signal }),
  refetchInterval: SLOWLY,
  retry: false,
});

export const queues = queryOptions({
  queryKey: ['cluster', 'queues'],
  queryFn: ({ signal }) => call<Page<Queue>>('/queues', { query: { limit: LONGEST }, signal }),
  refetchInterval: SLOWLY,
});

export const queue = (name: string) =>
  queryOptions({
    queryKey: ['cluster', 'queue', name],
    queryFn: ({ signal }) => call<Queue>(`/queues/${part(name)}`, { signal }),
  });

/** The documents in force, or those that were deleted; under `configuration`, which a change of any document marks stale. */
export const documents = (deleted = false) =>
  infiniteQueryOptions({
    queryKey: ['configuration', 'list', deleted],
    queryFn: ({ pageParam, signal }) =>
      call<Page<DocumentSummary>>('/documents', { query: { limit: 500, after: pageParam, deleted: deleted || undefined }, signal }),
    initialPageParam: '',
    getNextPageParam: (page) => page.next,
  });

export const documentPath = (kind: string, name: string) => `/documents/${part(kind)}/${part(name)}`;

export const history = (kind: string, name: string) =>
  infiniteQueryOptions({
    queryKey: ['configuration', kind, name, 'history'],
    queryFn: ({ pageParam, signal }) =>
      call<Page<DocumentSummary>>(`${documentPath(kind, name)}/history`, { query: { limit: 50, after: pageParam }, signal }),
    initialPageParam: '',
    getNextPageParam: (page) => page.next,
  });

/** A revision never changes, so it is asked for once. */
export const document = (kind: string, name: string, revision: number) =>
  queryOptions({
    queryKey: ['revision', kind, name, revision],
    queryFn: ({ signal }) => call<DocumentView>(documentPath(kind, name), { query: { revision }, signal }),
    staleTime: Infinity,
  });

export const difference = (kind: string, name: string, before: number, after: number) =>
  queryOptions({
    queryKey: ['revision', kind, name, before, after],
    queryFn: ({ signal }) =>
      call<DocumentDiff>(`${documentPath(kind, name)}/diff`, { query: { from: before, to: after }, signal }),
    staleTime: Infinity,
  });

/** The call that rolls a document back to a revision, or deletes it while that revision is in force. */
export function documentChange(of: DocumentSummary, action: 'rollback' | 'delete', query: CallOptions['query']): [string, CallOptions] {
  const path = documentPath(of.kind, of.name);
  if (action === 'delete') return [path, { method: 'DELETE', query, headers: { 'If-Match': `"${of.revision}"` } }];
  return [`${path}/rollback`, { method: 'POST', json: { revision: of.revision }, query }];
}

/** What a change of a document would do; refused with what it would break. */
export const changeTrial = (of: DocumentSummary, action: 'rollback' | 'delete', preempt: boolean) =>
  queryOptions({
    queryKey: ['configuration', of.kind, of.name, action, of.revision, preempt],
    queryFn: ({ signal }) => {
      const [path, options] = documentChange(of, action, { dryRun: true, preempt: preempt || undefined });
      return call<Applied>(path, { ...options, signal });
    },
    retry: false,
    staleTime: 0,
    gcTime: 0,
  });

export const useOf = (name: string) =>
  queryOptions({
    queryKey: ['use', name],
    queryFn: ({ signal }) => call<AccountUse>(`/users/${part(name)}/use`, { signal }),
    enabled: name !== '',
    refetchInterval: SLOWLY,
  });

export const user = (name: string) =>
  queryOptions({
    queryKey: ['user', name],
    queryFn: ({ signal }) => call<UserView>(`/users/${part(name)}`, { signal }),
  });

export const tokens = queryOptions({
  queryKey: ['tokens'],
  queryFn: ({ signal }) => call<Page<Token>>('/tokens', { signal }),
});

export const channels = queryOptions({
  queryKey: ['channels'],
  queryFn: ({ signal }) => call<Page<Channel>>('/account/notifications', { signal }),
});

export const notifications = queryOptions({
  queryKey: ['notifications'],
  queryFn: ({ signal }) => call<Page<Notification>>('/account/notification-history?limit=20', { signal }),
  refetchInterval: SLOWLY,
});
