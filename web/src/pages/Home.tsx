/** Home: what needs the reader, what changed since the last visit, the reader's jobs, and the queues with their shares. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import * as monitoring from '../api/monitoring';
import * as ask from '../api/queries';
import { groups as askGroups } from '../api/teams';
import { type Alert, ENDED, type JobSummary, type Queue } from '../api/types';
import { CommandLine } from '../components/Copy';
import { why } from '../components/JobTable';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { ShareBar, ShareLegend } from '../components/ShareBar';
import { Status } from '../components/Status';
import { Ago, useNow } from '../components/Time';
import { useTitle } from '../components/useTitle';
import { useVisit } from '../components/useVisit';
import { said, shapeOf, toneOf } from '../lib/alerts';
import { quote } from '../lib/cli';
import { changes, needs, queuesOf, type Needs } from '../lib/home';
import { idleWords } from '../lib/idle';
import { amount, own, scaleOf } from '../lib/shares';
import { home as texts } from '../texts/english/home';
import { counted } from '../texts/fill';

/** Lines of one part; the rest is a click away. */
const MOST = 8;

export function Home() {
  const user = useQuery(ask.me).data?.user ?? '';
  const live = useQuery(ask.liveJobsOf(user));
  const ended = useQuery(ask.endedJobsOf(user));
  useTitle(texts.home);
  const fault = [live, ended].find((each) => each.error && !each.data);
  if (fault) return <Fault error={fault.error} retry={() => void fault.refetch()} />;
  if (!live.data || !ended.data) return <Skeleton rows={8} />;
  return (
    <section className="pt-3">
      <h1 className="sr-only">{texts.home}</h1>
      <div className="grid grid-cols-[minmax(0,1fr)] gap-x-12 lg:grid-cols-2">
        <div>
          <NeedsPart user={user} live={live.data.items} ended={ended.data.items} />
          <ChangesPart user={user} jobs={[...live.data.items, ...ended.data.items]} />
        </div>
        <div>
          <JobsPart user={user} jobs={live.data.items} more={live.data.next !== null} />
          <QueuesPart user={user} jobs={live.data.items} />
        </div>
      </div>
      <p className="pt-4">
        <CommandLine line={`corral ls --user ${quote(user)}`} />
      </p>
    </section>
  );
}

function Part({ title, children, aside }: { title: string; children: ReactNode; aside?: ReactNode }) {
  return (
    <section aria-label={title} className="pb-2">
      <h2 className="heading mt-5">
        <span className="grow whitespace-nowrap">{title}</span>
        {aside}
      </h2>
      {children}
    </section>
  );
}

const Nothing = ({ children }: { children: ReactNode }) => <p className="px-2.5 py-3 text-sm text-muted">{children}</p>;

/** One line that leads somewhere, with what is to be known of it below. */
function Line({ mark, name, told, aside, tone = 'text-muted' }: { mark: ReactNode; name: ReactNode; told?: string; aside: ReactNode; tone?: string }) {
  return (
    <li className="flex items-baseline gap-3 border-b border-line px-2.5 py-1.5 text-sm">
      {mark}
      <span className="min-w-0 grow">
        {name}
        {told && <span className={`line-clamp-2 text-xs [overflow-wrap:anywhere] ${tone}`}>{told}</span>}
      </span>
      <span className="text-xs whitespace-nowrap text-muted">{aside}</span>
    </li>
  );
}

const JobLink = ({ id, name }: { id: string; name: string }) => (
  <Link to="/jobs/$ref" params={{ ref: id }} className="block truncate font-medium hover:underline">
    {name}
  </Link>
);

const Mark = ({ state }: { state: string }) => (
  <span className="w-20 shrink-0 text-xs">
    <Status state={state} />
  </span>
);

function NeedsPart({ user, live, ended }: { user: string; live: readonly JobSummary[]; ended: readonly JobSummary[] }) {
  const idle = useQuery(monitoring.idleJobs).data?.items ?? [];
  const alerts = useQuery(monitoring.alerts).data?.items ?? [];
  const found = needs({ user, live, ended, idle, alerts, now: useNow() });
  const many = Object.values(found).reduce((sum, each: unknown[]) => sum + each.length, 0);
  return (
    <Part title={texts.needs} aside={many > 0 && <span className="text-xs font-normal text-muted">{many}</span>}>
      {many === 0 && <Nothing>{texts.nothing}</Nothing>}
      <ul>
        <FailedAndWaiting found={found} />
        {found.idle.slice(0, MOST).map((job) => (
          <Line key={`idle ${job.job}`} mark={<Word tone="text-wait">{texts.idle}</Word>} name={<JobLink id={job.job} name={job.name} />} told={idleWords(job)} aside={<Ago at={job.since} />} />
        ))}
        {found.alerts.slice(0, MOST).map((alert) => (
          <AlertLine key={`${alert.source} ${alert.fingerprint}`} alert={alert} />
        ))}
      </ul>
      <More parts={found} user={user} />
    </Part>
  );
}

function FailedAndWaiting({ found }: { found: Needs }) {
  return (
    <>
      {found.failed.slice(0, MOST).map((job) => (
        <Line key={job.id} mark={<Mark state="failed" />} name={<JobLink id={job.id} name={job.name} />} told={why(job)} tone="text-fail" aside={<Ago at={job.endedAt} />} />
      ))}
      {found.waiting.slice(0, MOST).map((job) => (
        <Line key={job.id} mark={<Mark state="waiting" />} name={<JobLink id={job.id} name={job.name} />} told={why(job)} aside={<Ago at={job.createdAt} />} />
      ))}
    </>
  );
}

const Word = ({ tone, children }: { tone: string; children: ReactNode }) => <span className={`w-20 shrink-0 text-xs whitespace-nowrap ${tone}`}>{children}</span>;

const TONES = { fail: 'text-fail', wait: 'text-wait', muted: 'text-muted' };

function AlertLine({ alert }: { alert: Alert }) {
  const name = (
    <Link to="/alerts" search={{ q: alert.name }} className="block truncate font-medium hover:underline">
      {alert.name}
    </Link>
  );
  const mark = (
    <Word tone={TONES[toneOf(alert.severity)]}>
      {shapeOf(alert.severity)} {alert.severity || texts.alert}
    </Word>
  );
  return <Line mark={mark} name={name} told={said(alert)} aside={<Ago at={alert.since} />} />;
}

/** Leads to what is not in the list. */
function More({ parts, user }: { parts: Needs; user: string }) {
  const over = (many: readonly unknown[]) => many.length > MOST;
  if (!Object.values(parts).some(over)) return null;
  return (
    <p className="flex flex-wrap gap-4 px-2.5 pt-2 text-xs">
      {over(parts.failed) && (
        <Link to="/" search={{ user, state: 'failed', order: 'ended' }} className="link">
          {counted(texts.allFailed, parts.failed.length)}
        </Link>
      )}
      {over(parts.waiting) && (
        <Link to="/" search={{ user, state: 'waiting' }} className="link">
          {counted(texts.allWaiting, parts.waiting.length)}
        </Link>
      )}
      {over(parts.idle) && (
        <Link to="/idle" className="link">
          {counted(texts.allIdle, parts.idle.length)}
        </Link>
      )}
      {over(parts.alerts) && (
        <Link to="/alerts" className="link">
          {counted(texts.allAlerts, parts.alerts.length)}
        </Link>
      )}
    </p>
  );
}

function ChangesPart({ user, jobs }: { user: string; jobs: readonly JobSummary[] }) {
  const [known, know] = useVisit(user);
  const found = known === null ? [] : changes(jobs, known);
  return (
    <Part
      title={texts.sinceLastVisit}
      aside={
        known !== null && (
          <span className="text-xs font-normal text-muted">
            <Ago at={new Date(known).toISOString()} />
            {found.length > 0 && (
              <button type="button" className="link pl-3" onClick={() => know(Date.parse(found[0]!.at))}>
                {texts.seen}
              </button>
            )}
          </span>
        )
      }
    >
      {known === null && <Nothing>{texts.firstVisit}</Nothing>}
      {known !== null && found.length === 0 && <Nothing>{texts.noChange}</Nothing>}
      <ul>
        {found.slice(0, MOST).map(({ job, word, at }) => (
          <Line key={job.id} mark={<Mark state={job.state} />} name={<JobLink id={job.id} name={job.name} />} aside={<>{texts.changes[word]} <Ago at={at} /></>} />
        ))}
      </ul>
      {found.length > MOST && <Nothing>{counted(texts.moreChanges, found.length - MOST)}</Nothing>}
    </Part>
  );
}

function JobsPart({ user, jobs, more }: { user: string; jobs: readonly JobSummary[]; more: boolean }) {
  const shown = jobs.filter(({ state }) => !ENDED.has(state)).slice(0, MOST);
  return (
    <Part
      title={texts.jobs}
      aside={
        <Link to="/" search={{ user }} className="link text-xs font-normal">
          {texts.allJobs}
        </Link>
      }
    >
      {shown.length === 0 && (
        <Empty title={texts.noJobs} line="corral run -- python -c 'print(6 * 7)'">
          {texts.runOne}
        </Empty>
      )}
      <ul>
        {shown.map((job) => (
          <Line key={job.id} mark={<Mark state={job.state} />} name={<JobLink id={job.id} name={job.name} />} told={why(job)} aside={<Ago at={job.startedAt ?? job.createdAt} />} />
        ))}
      </ul>
      {(more || jobs.length > shown.length) && <Nothing>{more ? texts.furtherJobs : counted(texts.moreJobs, jobs.length - shown.length)}</Nothing>}
    </Part>
  );
}

function QueuesPart({ user, jobs }: { user: string; jobs: readonly JobSummary[] }) {
  const queues = useQuery(ask.queues);
  const groups = useQuery(askGroups);
  const mine = queuesOf(user, queues.data?.items ?? [], jobs, groups.data?.items ?? []);
  const scale = scaleOf(mine.flatMap((each) => each.standing ?? []), 'devices');
  return (
    <Part
      title={texts.queues}
      aside={
        <Link to="/queues" className="link text-xs font-normal">
          {texts.allQueues}
        </Link>
      }
    >
      {queues.data && mine.length === 0 && <Nothing>{texts.noQueue}</Nothing>}
      {mine.length > 0 && (
        <table className="grid-table">
          <thead>
            <tr>
              <th>{texts.queue}</th>
              <th className="w-[38%]">{texts.devices}</th>
              <th className="num">{texts.used}</th>
              <th className="num max-sm:hidden">{texts.own}</th>
              <th className="num">{texts.waiting}</th>
            </tr>
          </thead>
          <tbody>
            {mine.map((queue) => (
              <QueueRow key={queue.name} queue={queue} scale={scale} />
            ))}
          </tbody>
        </table>
      )}
      {scale > 0 && <ShareLegend />}
    </Part>
  );
}

function QueueRow({ queue, scale }: { queue: Queue; scale: number }) {
  const { standing } = queue;
  return (
    <tr data-queue={queue.name}>
      <td className="max-w-40 truncate">
        <Link to="/queues" search={{ queue: queue.name }} className="font-medium hover:underline">
          {queue.name}
        </Link>
      </td>
      <td>{standing && <ShareBar queue={standing} resource="devices" scale={scale} />}</td>
      <td className="num">{amount('devices', standing?.used.devices ?? queue.devices)}</td>
      <td className="num max-sm:hidden">{standing ? amount('devices', own(standing, 'devices')) : '–'}</td>
      <td className="num">{standing?.waiting ?? queue.waiting}</td>
    </tr>
  );
}
