/** What each queue was owed and got in a week, how even that was, and how long jobs waited. */

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import * as ask from '../api/monitoring';
import type { FairnessRow, UserFairness } from '../api/types';
import { CommandLine } from '../components/Copy';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { UsageTabs } from '../components/UsageTabs';
import { useTitle } from '../components/useTitle';
import { serverToday } from '../lib/clock';
import { fairnessLine, fairnessWords, ratioWords, weeksUpTo } from '../lib/fairness';
import { duration } from '../lib/time';
import { hours, number } from '../lib/usage';
import { fairness as texts } from '../texts/english/fairness';
import { fill, number as whole } from '../texts/fill';

const route = getRouteApi('/frame/fairness');
const WEEKS = 53;

export function Fairness() {
  const { week = '' } = route.useSearch();
  const navigate = route.useNavigate();
  const today = serverToday();
  const offered = useMemo(() => weeksUpTo(Date.parse(today), WEEKS), [today]);
  const shown = week || offered[1] || '';
  const report = useQuery(ask.fairness(week));
  useTitle(fill(texts.titleOfWeek, { week: shown }));
  return (
    <section className="pt-3">
      <h1 className="sr-only">{texts.title}</h1>
      <UsageTabs />
      <div className="flex flex-wrap items-center gap-3 py-2.5">
        <select aria-label={texts.week} className="field !w-auto" value={shown} onChange={(event) => void navigate({ search: { week: event.target.value === offered[1] ? undefined : event.target.value }, replace: true })}>
          {(offered.includes(shown) ? offered : [shown, ...offered]).map((each) => (
            <option key={each} value={each}>
              {each === offered[0] ? fill(texts.weekSoFar, { week: each }) : each === offered[1] ? fill(texts.lastWholeWeek, { week: each }) : each}
            </option>
          ))}
        </select>
        {report.data && (
          <p className="text-xs text-muted">
            {fill(texts.period, { begin: report.data.begin.slice(0, 10), end: report.data.end.slice(0, 10) })}
          </p>
        )}
      </div>
      {report.error && <Fault error={report.error} retry={() => void report.refetch()} />}
      {report.isPending && <Skeleton rows={5} height={30} />}
      {report.data && report.data.items.length === 0 && (
        <Empty title={texts.empty}>{texts.emptyNote}</Empty>
      )}
      {report.data && report.data.items.length > 0 && (
        <>
          <ul aria-label={texts.summary} className="max-w-[80ch] space-y-1 py-2 text-sm">
            {fairnessWords(report.data).map((sentence) => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
          <Queues rows={report.data.items} />
          {report.data.users.length > 0 && <Users rows={report.data.users} />}
        </>
      )}
      {report.data && report.data.unknown.length > 0 && (
        <ul aria-label={texts.notKnown} className="max-w-[80ch] pt-3 text-xs text-muted">
          {report.data.unknown.map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
      )}
      <div className="flex justify-end pt-3">
        <CommandLine line={fairnessLine(week)} />
      </div>
    </section>
  );
}

function Queues({ rows }: { rows: readonly FairnessRow[] }) {
  return (
    <table className="grid-table" aria-label={texts.queues}>
      <thead>
        <tr>
          <th>{texts.queue}</th>
          <th className="num">{texts.owed}</th>
          <th className="num">{texts.got}</th>
          <th className="num">{texts.gotOfOwed}</th>
          <th className="num max-md:hidden">{texts.jobsStarted}</th>
          <th className="num max-md:hidden">{texts.halfWaited}</th>
          <th className="num max-sm:hidden">{texts.mostWaited}</th>
          <th className="num max-sm:hidden" title={texts.slowestJobMeans}>
            {texts.slowestJob}
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <Row key={row.queue} row={row} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ row }: { row: FairnessRow }) {
  const { shape, tone, words } = ratioWords(row);
  const wait = (seconds: number | null) => (seconds === null ? '–' : duration(seconds));
  return (
    <tr data-queue={row.queue}>
      <td className="[overflow-wrap:anywhere]">
        <Link to="/queues" search={{ queue: row.queue }} className="link">
          {row.queue}
        </Link>
      </td>
      <td className="num text-muted">{hours(row.owed)}</td>
      <td className="num">{hours(row.got)}</td>
      <td className={`num font-medium whitespace-nowrap ${tone}`} title={words}>
        <span aria-hidden>{shape}</span> {row.ratio === null ? '–' : `${number(100 * row.ratio, 0)} %`}
        <span className="sr-only">{fill(texts.ratioSpoken, { words })}</span>
      </td>
      <td className="num text-muted max-md:hidden">{whole(row.started)}</td>
      <td className="num text-muted max-md:hidden">{wait(row.waitP50)}</td>
      <td className="num text-muted max-sm:hidden">{wait(row.waitP95)}</td>
      <td className="num max-sm:hidden">
        {row.worstFinishTimeRatio === null ? (
          <span className="text-faint">–</span>
        ) : (
          <Link to="/jobs/$ref" params={{ ref: row.worstJob }} className="link">
            {fill(texts.times, { factor: number(row.worstFinishTimeRatio, 1) })}
          </Link>
        )}
      </td>
    </tr>
  );
}

function Users({ rows }: { rows: readonly UserFairness[] }) {
  return (
    <>
      <h2 className="pt-6 pb-1 text-sm font-medium">{texts.finishTimes}</h2>
      <p className="max-w-[80ch] pb-2 text-xs text-muted">
        {texts.finishTimesMean}
      </p>
      <table className="grid-table" aria-label={texts.users}>
        <thead>
          <tr>
            <th>{texts.user}</th>
            <th className="num">{texts.jobs}</th>
            <th className="num">{texts.halfUpTo}</th>
            <th className="num">{texts.worst}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.user} data-user={row.user}>
              <td className="[overflow-wrap:anywhere]">{row.user}</td>
              <td className="num text-muted">{whole(row.jobs)}</td>
              <td className="num">{number(row.rhoP50, 2)}</td>
              <td className="num">
                <Link to="/jobs/$ref" params={{ ref: row.worstJob }} className="link">
                  {number(row.worstRho, 2)}
                </Link>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
