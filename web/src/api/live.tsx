/** Keeps what is on screen current: the server's events say which answers are stale, and those are asked for again. */

import { useQueryClient, type Query, type QueryClient } from '@tanstack/react-query';
import { createContext, useContext, useEffect, useState, type ReactNode } from 'react';
import { address } from './client';
import { stream } from './sse';
import type { EventRecord } from './types';

const Connected = createContext(true);

/** Whether events arrive; false while the connection is being taken up again. */
export const useConnected = () => useContext(Connected);

const SETTLE_MS = 350;

/** Whether a reader waits for a further page of it: to ask for it anew would throw that page away. */
const getsMore = ({ state }: Query) => state.fetchStatus === 'fetching' && state.fetchMeta?.fetchMore !== undefined;

/** Collects stale keys and refreshes each at most once per `SETTLE_MS`, so that a storm of events costs few requests. */
export class Refresher {
  private jobs = new Set<string>();
  private configured = false;
  private alerted = false;
  private idle = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private client: QueryClient) {}

  note(event: Pick<EventRecord, 'job' | 'kind'>): void {
    this.jobs.add(event.job);
    this.configured ||= event.kind === 'configuration.changed';
    this.alerted ||= event.kind.startsWith('server.alert-');
    this.idle ||= event.kind.startsWith('job.idle-') || event.kind === 'server.idle-dry-run';
    this.timer ??= setTimeout(() => this.flush(), SETTLE_MS);
  }

  flush(): void {
    this.timer = undefined;
    const jobs = this.jobs;
    this.jobs = new Set();
    const { configured, alerted, idle } = this;
    this.configured = this.alerted = this.idle = false;
    const stale = ({ queryKey: [kind, job] }: Query) =>
      kind === 'jobs' || kind === 'cluster' || (configured && kind === 'configuration') || (alerted && kind === 'alerts') || (idle && kind === 'idle') || (kind === 'job' && jobs.has(String(job)));
    if (this.client.getQueryCache().findAll({ predicate: (query) => stale(query) && getsMore(query) }).length > 0) {
      this.jobs = jobs;
      Object.assign(this, { configured, alerted, idle });
      this.timer = setTimeout(() => this.flush(), SETTLE_MS);
    }
    void this.client.invalidateQueries({ predicate: (query) => stale(query) && !getsMore(query) });
  }

  refreshAll(): void {
    void this.client.invalidateQueries();
  }

  close(): void {
    clearTimeout(this.timer);
  }
}

export function Live({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [connected, setConnected] = useState(true);
  useEffect(() => {
    const abort = new AbortController();
    const refresher = new Refresher(client);
    let lost = false;
    void stream({
      url: address('/events'),
      signal: abort.signal,
      onFrame: (frame) => refresher.note(JSON.parse(frame.data) as EventRecord),
      onState: (now) => {
        if (now && lost) refresher.refreshAll();
        lost = !now;
        setConnected(now);
      },
    });
    return () => {
      abort.abort();
      refresher.close();
    };
  }, [client]);
  return <Connected value={connected}>{children}</Connected>;
}
