/** Who used how much over a chosen time, what it costs, and how the budgets stand. */

import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useMemo } from 'react';
import * as ask from '../api/monitoring';
import { Budgets } from '../components/Budgets';
import { CommandLine } from '../components/Copy';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { PeriodChoice } from '../components/PeriodChoice';
import { QueueChoice } from '../components/QueueChoice';
import { UsageTabs } from '../components/UsageTabs';
import { UseChart } from '../components/UseChart';
import { UserChoice } from '../components/UserChoice';
import { UseTable } from '../components/UseTable';
import { useTitle } from '../components/useTitle';
import { serverToday } from '../lib/clock';
import { hand } from '../lib/download';
import { focusCsv } from '../lib/focus';
import { asked, daysOf, isCharted, period, readBy, reportCsv, stacks, usageLine, WAYS, type By, type Charted, type Period, type Shown } from '../lib/usage';

const route = getRouteApi('/frame/usage');
const CSV = 'text/csv;charset=utf-8';

export function Usage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const by = readBy(search.by);
  const { queue = '', user = '' } = search;
  const today = serverToday();
  const chosen = useMemo(() => period(search, Date.parse(today)), [search, today]);
  const whose = { ...asked(chosen), user: user || undefined, queue: queue || undefined };
  const report = useQuery(ask.usage(by, whose));
  const set = (change: Partial<typeof search>) => void navigate({ search: (now) => ({ ...now, ...change }), replace: true });
  useTitle('Usage');
  return (
    <section className="pt-3">
      <h1 className="sr-only">Usage</h1>
      <UsageTabs />
      <Choices by={by} chosen={chosen} onChange={set} />
      {report.error && <Fault error={report.error} retry={() => void report.refetch()} />}
      {report.isPending && <Skeleton rows={5} height={30} />}
      {report.data && report.data.items.length === 0 && (
        <Empty title="Nothing was used in this time">
          Choose a longer time, or another queue or user. What a task holds counts from its start, also while it runs.
        </Empty>
      )}
      {report.data && report.data.items.length > 0 && (
        <>
          {isCharted(by) ? <Chart by={by} chosen={chosen} whose={whose} costs={report.data.currency} /> : <p className="pt-4 text-xs text-muted">Use by day is shown by user, queue and model.</p>}
          <div className="pt-4">
            <UseTable report={report.data} />
          </div>
        </>
      )}
      <div className="flex flex-wrap items-center gap-2 pt-3">
        <button type="button" className="btn" disabled={!report.data} onClick={() => report.data && hand(new Blob([reportCsv(report.data)], { type: CSV }), `usage-by-${by}-${chosen.first}-${chosen.last}.csv`)}>
          CSV
        </button>
        <Focus whose={whose} chosen={chosen} />
        <span className="grow" />
        <CommandLine line={usageLine(by, chosen, user, queue)} />
      </div>
      <Budgets />
    </section>
  );
}

interface ChoicesProps {
  by: By;
  chosen: Period;
  onChange: (change: Partial<Record<'by' | 'days' | 'from' | 'to' | 'user' | 'queue', string>>) => void;
}

function Choices({ by, chosen, onChange }: ChoicesProps) {
  const search = route.useSearch();
  const { user = '', queue = '' } = search;
  return (
    <div className="flex flex-wrap items-end gap-x-3 gap-y-2 pt-3" role="search">
      <label className="space-y-1">
        <span className="label block">Summed by</span>
        <select className="field !w-auto" value={by} onChange={(event) => onChange({ by: event.target.value === 'user' ? undefined : event.target.value })}>
          {WAYS.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <PeriodChoice search={search} chosen={chosen} usual="30" onChange={onChange} />
      <span className="grow" />
      <QueueChoice queue={queue} onChange={(next) => onChange({ queue: next })} />
      <UserChoice user={user} onChange={(next) => onChange({ user: next })} />
    </div>
  );
}

const SHOWN: readonly (readonly [Shown, string])[] = [
  ['hours', 'Device-hours'],
  ['lost', 'Lost device-hours'],
  ['cost', 'Cost'],
];

function Chart({ by, chosen, whose, costs }: { by: Charted; chosen: Period; whose: ask.Asked; costs: string }) {
  const { show } = route.useSearch();
  const navigate = route.useNavigate();
  const offered = SHOWN.filter(([each]) => each !== 'cost' || costs);
  const [shown, word] = offered.find(([each]) => each === show) ?? offered[0]!;
  const { data, error, refetch } = useQuery(ask.charges(whose, true));
  const days = useMemo(() => daysOf(chosen), [chosen]);
  const drawn = useMemo(() => stacks(data?.items ?? [], by, shown, days), [data, by, shown, days]);
  if (error) return <Fault error={error} retry={() => void refetch()} />;
  if (!data) return <Skeleton rows={4} height={30} />;
  return (
    <>
      <div role="group" aria-label="What the chart shows" className="flex gap-1 pt-4">
        {offered.map(([each, words]) => (
          <button
            key={each}
            type="button"
            aria-pressed={each === shown}
            onClick={() => void navigate({ search: (now) => ({ ...now, show: each === 'hours' ? undefined : each }), replace: true })}
            className="inline-flex h-7 items-center rounded-[4px] border border-transparent px-2 text-xs text-muted hover:text-text aria-pressed:border-line-strong aria-pressed:bg-raised aria-pressed:font-medium aria-pressed:text-text"
          >
            {words}
          </button>
        ))}
      </div>
      {drawn.length > 0 ? (
        <UseChart stacks={drawn} days={days} by={by} what={shown === 'cost' ? `${word} in ${costs}` : word} />
      ) : (
        <p className="px-2.5 py-4 text-sm text-muted">{shown === 'lost' ? 'Nothing was lost.' : 'There is nothing to draw: no device was used.'}</p>
      )}
      {data.next && <p className="pt-1 text-xs text-wait">There are too many charges for one chart: it ends on {data.next.slice(0, 10)}. Choose a user, a queue or a shorter time.</p>}
    </>
  );
}

/** All charges of the period as FinOps FOCUS. */
function Focus({ whose, chosen }: { whose: ask.Asked; chosen: Period }) {
  const take = useMutation({
    mutationFn: async () => {
      const found = await ask.allCharges(whose);
      if (found.next) throw new Error(`There are too many charges for one file; it would end on ${found.next.slice(0, 10)}. Choose a shorter time.`);
      hand(new Blob([focusCsv(found.items, found.currency, location.origin)], { type: CSV }), `focus-${chosen.first}-${chosen.last}.csv`);
    },
  });
  return (
    <>
      <button type="button" className="btn" onClick={() => take.mutate()} disabled={take.isPending} title="A line for each day, user, queue, device model and meter, with the columns of FinOps FOCUS 1.1">
        FOCUS
      </button>
      {take.error && <Fault error={take.error} />}
    </>
  );
}
