/** The audit log. */

import { infiniteQueryOptions } from '@tanstack/react-query';
import { serverNow } from '../lib/clock';
import { begin, query, type Wanted } from '../lib/audit';
import { call } from './client';
import type { AuditRecord, Page } from './types';

/** The wanted lines, the latest first. */
export const audit = (wanted: Wanted) =>
  infiniteQueryOptions({
    queryKey: ['audit', wanted],
    queryFn: ({ pageParam, signal }) => call<Page<AuditRecord>>('/audit', { query: { ...query(wanted), from: begin(wanted, serverNow()), limit: 50, after: pageParam }, signal }),
    initialPageParam: '',
    getNextPageParam: (page) => page.next,
  });
