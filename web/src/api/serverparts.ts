/** The server's own parts, for administrators. */

import { queryOptions } from '@tanstack/react-query';
import { call } from './client';
import type { Page, ServerPart } from './types';

const EVERY_MS = 15_000;

export const serverParts = queryOptions({
  queryKey: ['server-parts'],
  queryFn: ({ signal }) => call<Page<ServerPart>>('/server-parts', { signal }),
  refetchInterval: EVERY_MS,
});
