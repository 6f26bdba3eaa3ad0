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
import { usage as texts } from '../texts/english/usage';
import { fill, textOf } from '../texts/fill';

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
  useTitle(texts.usage);
  return (
    <section className="pt-3">
      <h1 className="sr-only">{texts.usage}</h1>
      <UsageTabs />
      <Choices by={by} chosen={chosen} onChange={set} />
      {report.error && <Fault error={report.error} retry={() => void report.refetch()} />}
      {report.isPending && <Skeleton rows={5} height={30} />}
      {report.data && report.data.items.length === 0 && (
        <Empty title={texts.nothingWasUsed}>
          {texts.chooseLongerTime}
        </Empty>
      )}
      {report.data && report.data.items.length > 0 && (
        <>
          {isCharted(by) ? <Chart by={by} chosen={chosen} whose={whose} costs={report.data.currency} /> : <p className="pt-4 text-xs text-muted">{texts.useDayShown}</p>}
          <div className="pt-4">
            <UseTable report={report.data} />
          </div>
        </>
      )}
      <div className="flex flex-wrap items-center gap-2 pt-3">
        <button type="button" className="btn" disabled={!report.data} onClick={() => report.data && hand(new Blob([reportCsv(report.data)], { type: CSV }), `usage-by-${by}-${chosen.first}-${chosen.last}.csv`)}>
          {texts.csv}
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
        <span className="label block">{texts.summedBy}</span>
        <select className="field !w-auto" value={by} onChange={(event) => onChange({ by: event.target.value === 'user' ? undefined : event.target.value })}>
          {WAYS.map((each) => (
            <option key={each} value={each}>
              {textOf(texts.by, each)}
            </option>
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

const SHOWN: readonly Shown[] = ['hours', 'lost', 'cost'];

function Chart({ by, chosen, whose, costs }: { by: Charted; chosen: Period; whose: ask.Asked; costs: string }) {
  const { show } = route.useSearch();
  const navigate = route.useNavigate();
  const offered = SHOWN.filter((each) => each !== 'cost' || costs);
  const shown = offered.find((each) => each === show) ?? offered[0]!;
  const word = texts.charted[shown];
  const { data, error, refetch } = useQuery(ask.charges(whose, true));
  const days = useMemo(() => daysOf(chosen), [chosen]);
  const drawn = useMemo(() => stacks(data?.items ?? [], by, shown, days), [data, by, shown, days]);
  if (error) return <Fault error={error} retry={() => void refetch()} />;
  if (!data) return <Skeleton rows={4} height={30} />;
  return (
    <>
      <div role="group" aria-label={texts.whatChartShows} className="flex gap-1 pt-4">
        {offered.map((each) => (
          <button
            key={each}
            type="button"
            aria-pressed={each === shown}
            onClick={() => void navigate({ search: (now) => ({ ...now, show: each === 'hours' ? undefined : each }), replace: true })}
            className="inline-flex h-7 items-center rounded-[4px] border border-transparent px-2 text-xs text-muted hover:text-text aria-pressed:border-line-strong aria-pressed:bg-raised aria-pressed:font-medium aria-pressed:text-text"
          >
            {texts.charted[each]}
          </button>
        ))}
      </div>
      {drawn.length > 0 ? (
        <UseChart stacks={drawn} days={days} by={by} what={shown === 'cost' ? fill(texts.in, { word, costs }) : word} />
      ) : (
        <p className="px-2.5 py-4 text-sm text-muted">{shown === 'lost' ? texts.nothingWasLost : texts.thereNothingDraw}</p>
      )}
      {data.next && <p className="pt-1 text-xs text-wait">{fill(texts.thereTooMany, { next: data.next.slice(0, 10) })}</p>}
    </>
  );
}

/** All charges of the period as FinOps FOCUS. */
function Focus({ whose, chosen }: { whose: ask.Asked; chosen: Period }) {
  const take = useMutation({
    mutationFn: async () => {
      const found = await ask.allCharges(whose);
      if (found.next) throw new Error(fill(texts.thereTooManyCharges, { next: found.next.slice(0, 10) }));
      hand(new Blob([focusCsv(found.items, found.currency, location.origin)], { type: CSV }), `focus-${chosen.first}-${chosen.last}.csv`);
    },
  });
  return (
    <>
      <button type="button" className="btn" onClick={() => take.mutate()} disabled={take.isPending} title={texts.lineEachDay}>
        {texts.focus}
      </button>
      {take.error && <Fault error={take.error} />}
    </>
  );
}
