/** Every time that a job had to yield: to whom, under which rule, what it cost, and when it was back. */

import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import * as overview from '../api/overview';
import { CommandLine } from '../components/Copy';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { QueueChoice } from '../components/QueueChoice';
import { QueueTabs } from '../components/QueueTabs';
import { ReceiptTable } from '../components/Receipts';
import { useTitle } from '../components/useTitle';
import { quote } from '../lib/cli';
import { receipts as texts } from '../texts/english/receipts';
import { fill } from '../texts/fill';

const route = getRouteApi('/frame/receipts');

export function Receipts() {
  const { queue = '' } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useInfiniteQuery(overview.receipts(queue));
  const found = list.data?.pages.flatMap((page) => page.items) ?? [];
  useTitle(texts.receipts);
  return (
    <section className="pt-3">
      <h1 className="sr-only">{texts.receipts}</h1>
      <QueueTabs queue={queue} />
      <div className="flex flex-wrap items-center gap-3 py-2.5">
        <QueueChoice queue={queue} onChange={(next) => void navigate({ search: { queue: next }, replace: true })} />
        {found.length > 0 && <span className="text-xs text-muted">{queue ? fill(texts.latestFirstOf, { queue }) : texts.latestFirst}</span>}
      </div>
      {list.error && !list.data && <Fault error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && !list.error && <Skeleton rows={6} />}
      {list.data && found.length === 0 && (
        <Empty title={texts.nothingYield} line="corral queues">
          {texts.emptyNote}
        </Empty>
      )}
      {found.length > 0 && <ReceiptTable receipts={found} named />}
      <div className="flex flex-wrap items-center justify-between gap-2 pt-3">
        {list.hasNextPage ? (
          <button type="button" className="btn" disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            {list.isFetchingNextPage ? texts.loading : texts.showOlderReceipts}
          </button>
        ) : (
          <span />
        )}
        <CommandLine line={queue ? `corral receipts --queue ${quote(queue)}` : 'corral receipts'} />
      </div>
    </section>
  );
}
