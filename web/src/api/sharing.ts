/** Which document says what each queue is owed: its own, or that of a cluster. */

import { queryOptions, type QueryClient } from '@tanstack/react-query';
import { nameOf } from '../lib/documents';
import { call } from './client';
import * as ask from './queries';
import type { DocumentSummary, Page } from './types';

export interface Source {
  kind: string;
  name: string;
  /** 0 where there is none yet. */
  revision: number;
  actor: string;
}

export interface Sources {
  /** By queue. */
  of: Readonly<Record<string, Source>>;
  /** By KIND/NAME. */
  documents: Readonly<Record<string, Source>>;
}

async function all(kind: string, signal: AbortSignal): Promise<DocumentSummary[]> {
  const found: DocumentSummary[] = [];
  for (let after: string | null | undefined = ''; after !== null && after !== undefined; ) {
    const page: Page<DocumentSummary> = await call('/documents', { query: { kind, limit: 500, after }, signal });
    found.push(...page.items);
    after = page.next;
  }
  return found;
}

/** Under `configuration`, which a change of any document marks stale. A queue's own document goes before a cluster's. */
export const sources = (client: QueryClient) =>
  queryOptions({
    queryKey: ['configuration', 'sources'],
    queryFn: async ({ signal }): Promise<Sources> => {
      const of: Record<string, Source> = {};
      const documents: Record<string, Source> = {};
      for (const { kind, name, revision, actor } of await all('Cluster', signal)) {
        const cluster = { kind, name, revision, actor };
        const { document } = await client.fetchQuery(ask.document(kind, name, revision));
        documents[nameOf(cluster)] = cluster;
        for (const queue of Object.keys((document.queues as object | null | undefined) ?? {})) of[queue] = cluster;
      }
      for (const { kind, name, revision, actor } of await all('Queue', signal)) of[name] = documents[`${kind}/${name}`] = { kind, name, revision, actor };
      return { of, documents };
    },
  });

/** The document of a queue; a new one of its own where no document has it. */
export function sourceOf(known: Sources, queue: string): Source {
  return known.of[queue] ?? { kind: 'Queue', name: queue, revision: 0, actor: '' };
}
