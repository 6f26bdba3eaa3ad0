/** Which alerts have fired, the latest first: when, and for how long. */

import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import * as ask from '../api/monitoring';
import type { PastAlert } from '../api/types';
import { labelWords, said } from '../lib/alerts';
import { between, duration } from '../lib/time';
import { alerts as texts } from '../texts/english/alerts';
import { Severity } from './AlertTable';
import { Fault, Skeleton } from './Notices';
import { Ago } from './Time';

/** The list is asked for once somebody opens it. */
export function AlertHistory() {
  const [open, setOpen] = useState(false);
  return (
    <details className="mt-7" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="heading cursor-pointer">
        {texts.history}
        <span className="text-xs font-normal text-muted">{texts.historyNote}</span>
        <span aria-hidden="true" className="link ml-auto text-xs font-normal">
          {open ? texts.hide : texts.show}
        </span>
      </summary>
      {open && <Entries />}
    </details>
  );
}

function Entries() {
  const list = useInfiniteQuery(ask.alertHistory);
  const entries = list.data?.pages.flatMap((page) => page.items) ?? [];
  if (list.error && !list.data) return <Fault error={list.error} retry={() => void list.refetch()} />;
  if (list.isPending) return <Skeleton rows={3} height={30} />;
  if (entries.length === 0) return <p className="pt-2 text-xs text-muted">{texts.noAlertFired}</p>;
  return (
    <>
      <table className="grid-table [&_td]:!align-top" aria-label={texts.history}>
        <thead>
          <tr>
            <th className="w-24 max-sm:w-8">
              <span className="max-sm:sr-only">{texts.severity}</span>
            </th>
            <th>{texts.alert}</th>
            <th>{texts.fired}</th>
            <th className="num">{texts.for}</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((alert) => (
            <Row key={`${alert.source} ${alert.fingerprint} ${alert.firedAt}`} alert={alert} />
          ))}
        </tbody>
      </table>
      {list.hasNextPage && (
        <button type="button" className="btn mt-2 !h-7" onClick={() => void list.fetchNextPage()} disabled={list.isFetchingNextPage}>
          {texts.showEarlierAlerts}
        </button>
      )}
    </>
  );
}

function Row({ alert }: { alert: PastAlert }) {
  return (
    <tr data-alert={alert.name}>
      <td>
        <Severity severity={alert.severity} />
      </td>
      <td className="min-w-0">
        <p className="font-medium [overflow-wrap:anywhere]">{alert.name}</p>
        {said(alert) && <p className="max-w-[75ch] [overflow-wrap:anywhere]">{said(alert)}</p>}
        <p className="text-xs text-muted [overflow-wrap:anywhere]">{labelWords(alert.labels).join(' · ')}</p>
      </td>
      <td className="w-36 whitespace-nowrap text-muted max-sm:w-auto">
        <Ago at={alert.firedAt} />
      </td>
      <td className="num w-24 whitespace-nowrap text-muted">{alert.endedAt === null ? texts.fires : duration(between(alert.firedAt, alert.endedAt))}</td>
    </tr>
  );
}
