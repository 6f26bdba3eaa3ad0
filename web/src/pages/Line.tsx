/** What waits, in the order in which the scheduler looks at it, each with what it wants and why it waits. */

import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import * as overview from '../api/overview';
import * as ask from '../api/queries';
import type { LineEntry } from '../api/types';
import { CommandLine } from '../components/Copy';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { OrderDialog } from '../components/OrderDialog';
import { QueueChoice } from '../components/QueueChoice';
import { QueueTabs } from '../components/QueueTabs';
import { Source } from '../components/Outlook';
import { Ago, useNow } from '../components/Time';
import { useTitle } from '../components/useTitle';
import { quote } from '../lib/cli';
import { useKeys, useRowSteps } from '../lib/keys';
import { manages } from '../lib/managing';
import { wants } from '../lib/shares';
import { steady } from '../lib/steady';
import { duration } from '../lib/time';
import { counts } from '../texts/english/counts';
import { line as texts } from '../texts/english/line';
import { counted, fill, textOf } from '../texts/fill';

const route = getRouteApi('/frame/line');

export function Line() {
  const { queue = '', job = '' } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useInfiniteQuery(overview.line(queue));
  useTitle(texts.waitingList);
  const set = (change: { queue?: string; job?: string }) => void navigate({ search: (now) => ({ ...now, job: undefined, ...change }), replace: true });
  const entries = list.data?.pages.flatMap((page) => page.items) ?? [];
  const total = list.data?.pages[0]?.total ?? 0;
  return (
    <section className="pt-3">
      <h1 className="sr-only">{texts.waitingList}</h1>
      <QueueTabs queue={queue} />
      <div className="flex flex-wrap items-center gap-3 py-2.5">
        <QueueChoice queue={queue} onChange={(next) => set({ queue: next })} />
        {list.data && total > 0 && <span className="text-xs text-muted">{fill(texts.waiting, { jobs: counted(counts.jobs, total) })}</span>}
        <span className="grow" />
        <Link to="/" search={{ state: 'waiting' }} className="link text-xs">
          {texts.allWaitAlso}
        </Link>
      </div>
      {list.error && !list.data && <Fault error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && !list.error && <Skeleton rows={8} />}
      {list.data && entries.length === 0 && (
        <Empty title={queue ? fill(texts.nothingWaitsIn, { queue }) : texts.nothingWaits} line={`corral run --devices 1${queue ? ` --queue ${quote(queue)}` : ''} -- sleep 60`}>
          {texts.emptyNote}
        </Empty>
      )}
      {entries.length > 0 && <Table entries={entries} scope={queue} selected={job} onSelect={(next) => set({ job: next })} />}
      <div className="flex flex-wrap items-center justify-between gap-2 pt-3">
        {list.hasNextPage ? (
          <button type="button" className="btn" disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            {list.isFetchingNextPage ? texts.loading : texts.showThoseBehind}
          </button>
        ) : (
          <span />
        )}
        {list.data?.pages[0]?.forecast && <Source forecast={list.data.pages[0].forecast} />}
        <CommandLine line={queue ? `corral line --queue ${quote(queue)}` : 'corral line'} />
      </div>
    </section>
  );
}

type Row = LineEntry & { id: string };

interface TableProps {
  entries: LineEntry[];
  scope: string;
  selected: string;
  onSelect: (job: string) => void;
}

function Table({ entries, scope, selected, onSelect }: TableProps) {
  const navigate = useNavigate();
  const [over, setOver] = useState(false);
  const [moving, setMoving] = useState<Row | null>(null);
  const [moved, setMoved] = useState(false); // rows follow what the reader has moved, until the pointer leaves
  const { data: me } = useQuery(ask.me);
  const managed = entries.some((entry) => manages(me, entry.queue));
  const shown = useRef<{ scope: string; ids: string[] }>({ scope, ids: [] });
  const fresh: Row[] = entries.map((entry) => ({ ...entry, id: `${entry.job} ${entry.grows}` }));
  const { rows } = steady(shown.current.ids, fresh, shown.current.scope === scope && over && !moved);
  useEffect(() => {
    shown.current = { scope, ids: rows.map((row) => row.id) };
  });
  const step = useRowSteps(rows.map(({ job }) => job), selected, onSelect);
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    Enter: () => selected && void navigate({ to: '/jobs/$ref', params: { ref: selected } }),
  });
  return (
    <>
      <div
        onPointerEnter={(event) => event.pointerType === 'mouse' && setOver(true)}
        onPointerLeave={() => {
          setOver(false);
          setMoved(false);
        }}
      >
        <table className="grid-table">
          <thead>
            <tr>
              <th className="num w-10">
                <span aria-hidden>#</span>
                <span className="sr-only">{texts.position}</span>
              </th>
              <th>{texts.job}</th>
              <th className="max-md:hidden">{texts.user}</th>
              <th className="max-md:hidden">{texts.queue}</th>
              <th className="num max-lg:hidden">{texts.priority}</th>
              <th className="max-sm:hidden">{texts.submitted}</th>
              <th className="num max-sm:hidden">{texts.starts}</th>
              <th className="max-lg:hidden">{texts.requests}</th>
              <th className="w-[40%] max-sm:w-[58%]">{texts.whyWaits}</th>
              {managed && (
                <th>
                  <span className="sr-only">{texts.move}</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr
                key={row.id}
                data-waiting={row.job}
                aria-selected={row.job === selected}
                className="align-top hover:bg-sunken aria-selected:bg-accent-ground aria-selected:shadow-[inset_3px_0_var(--accent)] [&>td]:!align-top"
              >
                <td className="num text-muted">{row.position}</td>
                <td className="max-w-0 min-w-28 sm:w-[18%]">
                  <Link to="/jobs/$ref" params={{ ref: row.job }} className="block truncate font-medium hover:underline">
                    {row.name}
                  </Link>
                  <span className="block truncate text-xs text-muted md:hidden">
                    {row.user} · {row.queue}
                  </span>
                  <span className="block text-xs text-muted lg:hidden">{wants(row)}</span>
                </td>
                <td className="max-md:hidden">{row.user}</td>
                <td className="max-md:hidden">{row.queue}</td>
                <td className="num max-lg:hidden">{row.priority}</td>
                <td className="text-muted max-sm:hidden">
                  <Ago at={row.submittedAt} />
                </td>
                <td className="num max-sm:hidden">
                  <Starts entry={row} />
                </td>
                <td className="text-muted max-lg:hidden">{wants(row)}</td>
                <td>
                  <Why entry={row} />
                </td>
                {managed && (
                  <td className="text-right">
                    {manages(me, row.queue) && !row.grows && (
                      <button type="button" className="link" aria-label={fill(texts.moveNamed, { name: row.name })} onClick={() => setMoving(row)}>
                        {texts.moveRow}
                      </button>
                    )}
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {moving && <OrderDialog job={{ ...moving, id: moving.job }} onMoved={() => setMoved(true)} onClose={() => setMoving(null)} />}
    </>
  );
}

/** The likely start of a waiting job; its tooltip says what that rests on. */
function Starts({ entry }: { entry: LineEntry }) {
  const now = useNow();
  const estimate = entry.estimate;
  if (!estimate?.at || !Object.hasOwn(texts.bounds, estimate.basis)) return <span className="text-faint">–</span>;
  return (
    <time dateTime={estimate.at} title={estimate.message} className="whitespace-nowrap">
      {fill(textOf(texts.bounds, estimate.basis), { time: duration(Math.max(0, Math.ceil((Date.parse(estimate.at) - now) / 1000))) })}
    </time>
  );
}

function Why({ entry }: { entry: LineEntry }) {
  return (
    <>
      {entry.yielding && <span className="font-medium text-accent">{texts.next} </span>}
      {!entry.possible && <span className="font-medium text-fail">{texts.never} </span>}
      {entry.reason?.message ?? <span className="text-muted">{texts.notLookedAt}</span>}
      {entry.reason && <span className="block font-mono text-2xs text-faint">{entry.reason.code}</span>}
    </>
  );
}
