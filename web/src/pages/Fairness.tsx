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

const route = getRouteApi('/frame/fairness');
const WEEKS = 53;

export function Fairness() {
  const { week = '' } = route.useSearch();
  const navigate = route.useNavigate();
  const today = serverToday();
  const offered = useMemo(() => weeksUpTo(Date.parse(today), WEEKS), [today]);
  const shown = week || offered[1] || '';
  const report = useQuery(ask.fairness(week));
  useTitle(`Fairness of ${shown}`);
  return (
    <section className="pt-3">
      <h1 className="sr-only">Fairness</h1>
      <UsageTabs />
      <div className="flex flex-wrap items-center gap-3 py-2.5">
        <select aria-label="Week" className="field !w-auto" value={shown} onChange={(event) => void navigate({ search: { week: event.target.value === offered[1] ? undefined : event.target.value }, replace: true })}>
          {(offered.includes(shown) ? offered : [shown, ...offered]).map((each) => (
            <option key={each} value={each}>
              {each}
              {each === offered[0] && ', so far'}
              {each === offered[1] && ', the last whole one'}
            </option>
          ))}
        </select>
        {report.data && (
          <p className="text-xs text-muted">
            {report.data.begin.slice(0, 10)} to {report.data.end.slice(0, 10)}, from Monday to Monday in UTC
          </p>
        )}
      </div>
      {report.error && <Fault error={report.error} retry={() => void report.refetch()} />}
      {report.isPending && <Skeleton rows={5} height={30} />}
      {report.data && report.data.items.length === 0 && (
        <Empty title="No queue wanted devices in this week">
          Choose another week. A queue has a line here when its jobs held devices, or waited for some, during the week.
        </Empty>
      )}
      {report.data && report.data.items.length > 0 && (
        <>
          <ul aria-label="Summary" className="max-w-[80ch] space-y-1 py-2 text-sm">
            {fairnessWords(report.data).map((sentence) => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
          <Queues rows={report.data.items} />
          {report.data.users.length > 0 && <Users rows={report.data.users} />}
        </>
      )}
      {report.data && report.data.unknown.length > 0 && (
        <ul aria-label="What is not known" className="max-w-[80ch] pt-3 text-xs text-muted">
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
    <table className="grid-table" aria-label="Queues">
      <thead>
        <tr>
          <th>Queue</th>
          <th className="num">Owed, device-hours</th>
          <th className="num">Got, device-hours</th>
          <th className="num">Got of owed</th>
          <th className="num max-md:hidden">Jobs started</th>
          <th className="num max-md:hidden">Half waited up to</th>
          <th className="num max-sm:hidden">95 % waited up to</th>
          <th className="num max-sm:hidden" title="Time from submission to end, by the time for which the job needed its devices">
            Slowest job
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
        <span className="sr-only">, {words}</span>
      </td>
      <td className="num text-muted max-md:hidden">{row.started.toLocaleString('en')}</td>
      <td className="num text-muted max-md:hidden">{wait(row.waitP50)}</td>
      <td className="num text-muted max-sm:hidden">{wait(row.waitP95)}</td>
      <td className="num max-sm:hidden">
        {row.worstFinishTimeRatio === null ? (
          <span className="text-faint">–</span>
        ) : (
          <Link to="/jobs/$ref" params={{ ref: row.worstJob }} className="link">
            {number(row.worstFinishTimeRatio, 1)} times
          </Link>
        )}
      </td>
    </tr>
  );
}

function Users({ rows }: { rows: readonly UserFairness[] }) {
  return (
    <>
      <h2 className="pt-6 pb-1 text-sm font-medium">Finish times of users</h2>
      <p className="max-w-[80ch] pb-2 text-xs text-muted">
        The time from a job’s submission to its end, by the one on an equal share of all devices that is its alone: 1 is as on such a share, above it is worse.
      </p>
      <table className="grid-table" aria-label="Users">
        <thead>
          <tr>
            <th>User</th>
            <th className="num">Jobs</th>
            <th className="num">Half up to</th>
            <th className="num">Worst</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.user} data-user={row.user}>
              <td className="[overflow-wrap:anywhere]">{row.user}</td>
              <td className="num text-muted">{row.jobs.toLocaleString('en')}</td>
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
