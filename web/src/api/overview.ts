/** What the scheduler knows: shares of queues, the waiting line, and cells with their owners (`corral/model/queue_views.py`). */

import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { call, part } from './client';
import type { Page, Reason, Receipt } from './types';

/** By resource: `devices`, `devices/MODEL`, `cpu` (thousandths), `memory` (bytes). */
export type Shares = Record<string, number>;

export interface CellShare {
  engine: string;
  level: string;
  model: string;
  devices: number;
  owned: number;
  bound: number;
  free: number;
  lent: number;
  missing: number;
}
export interface QueueStanding {
  name: string;
  parent: string;
  depth: number;
  weight: number;
  guaranteed: Shares;
  deserved: Shares;
  limit: Shares;
  borrowingLimit: Shares;
  used: Shares;
  fair: Shares;
  borrowed: Shares;
  lent: Shares;
  lentTo: Shares;
  borrowedFrom: Shares;
  cells: CellShare[];
  pinned: string[];
  ownedDevices: number;
  running: number;
  guests: number;
  waiting: number;
  wanted: Shares;
}
export interface LineEntry {
  position: number;
  job: string;
  name: string;
  user: string;
  queue: string;
  priority: number;
  submittedAt: string;
  tasks: number;
  devices: number;
  cpuMillis: number;
  memoryBytes: number;
  model: string;
  level: string;
  grows: boolean;
  yielding: boolean;
  reason: Reason | null;
  possible: boolean;
}
export interface WaitingLine extends Page<LineEntry> {
  at: string;
  total: number;
}
export type Standing = 'guaranteed' | 'guest' | '';
export interface DeviceUse {
  job: string;
  standing: Standing;
  leaving: boolean;
  share: number;
}
export interface CellDevice {
  index: number;
  state: 'free' | 'used' | 'leaving' | 'unhealthy' | 'closed';
  owner: string;
  pinned: boolean;
  uses: DeviceUse[];
}
export interface CellState {
  id: string;
  level: string;
  name: string;
  devices: number;
  owners: Shares;
  owner: string;
  state: '' | 'cordoned' | 'not-ready' | 'unknown';
  reason: string;
  cells: CellState[];
  holds: CellDevice[];
}
export interface Ledger {
  queue: string;
  lentDeviceSeconds: number;
  borrowedDeviceSeconds: number;
  lent: LedgerLine[];
  borrowed: LedgerLine[];
}
export interface LedgerLine {
  queue: string;
  deviceSeconds: number;
  devices: number;
  since: string;
}

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
  queryFn: ({ signal }) => call<{ cell: CellState }>('/cells', { query: { depth: 12, limit: MARKED }, signal }),
  refetchInterval: SLOWLY,
});

export const ledger = (queue: string) =>
  queryOptions({
    queryKey: ['cluster', 'ledger', queue],
    queryFn: ({ signal }) => call<Ledger>(`/queues/${part(queue)}/ledger`, { signal }),
    refetchInterval: SLOWLY,
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
