/** One job: its state at a glance, then overview, log, events, document and a terminal. */

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, Navigate } from '@tanstack/react-router';
import { lazy, Suspense, useState, type ReactNode } from 'react';
import { ApiError } from '../api/client';
import * as ask from '../api/queries';
import type { JobDetail } from '../api/types';
import { CommandLine, CopyWord } from '../components/Copy';
import { JobFile } from '../components/JobFile';
import { EventList } from '../components/EventList';
import { JobActions } from '../components/JobActions';
import { JobLog } from '../components/JobLog';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { Overview } from '../components/Overview';
import { Status } from '../components/Status';
import { TabBar } from '../components/Tabs';
import { TagMany } from '../components/TagMany';
import { Ago, Span, Sum } from '../components/Time';
import { WorkDone } from '../components/WorkDone';
import { useTitle } from '../components/useTitle';
import { jobLine, refOf } from '../lib/cli';
import { heldOf } from '../lib/format';
import { useKeys } from '../lib/keys';
import { job as texts } from '../texts/english/job';
import { shared } from '../texts/english/shared';
import { counted, fill, filled, number, textOf } from '../texts/fill';

const TaskTerminal = lazy(() => import('../components/TaskTerminal'));
const JobOutputs = lazy(() => import('../components/JobOutputs'));
const JobProfiles = lazy(() => import('../components/JobProfiles'));
const route = getRouteApi('/frame/jobs/$ref');
const TABS = ['overview', 'log', 'events', 'document', 'terminal', 'profiles', 'outputs'] as const;
type Tab = (typeof TABS)[number];
/** What the caller must be allowed to do with the job for a part to be shown. */
const NEEDS: Partial<Record<Tab, string>> = { log: 'logs', terminal: 'exec', profiles: 'profile' };

export function Job() {
  const { ref } = route.useParams();
  const { data: job, error, refetch } = useQuery(ask.job(ref));
  useTitle(job ? fill(texts.titleState, { name: job.name, state: textOf(shared.states, job.state) }) : texts.job);
  if (error && (!job || (error instanceof ApiError && error.status === 404))) return <NoJob error={error} retry={() => void refetch()} />;
  if (!job)
    return (
      <div className="pt-8">
        <Skeleton rows={10} />
      </div>
    );
  if (job.id !== ref) return <Navigate to="/jobs/$ref" params={{ ref: job.id }} search={true} replace />;
  return <Page job={job} />;
}

function NoJob({ error, retry }: { error: unknown; retry: () => void }) {
  if (!(error instanceof ApiError) || error.status !== 404) return <Fault error={error} retry={retry} />;
  return (
    <Empty title={texts.thereSuchJob} line="corral ls">
      {filled(texts.mayHaveBeen, { message: error.message, link: <Link to="/" className="link">{texts.allJobs}</Link> })}
    </Empty>
  );
}

function Page({ job }: { job: JobDetail }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { data: me } = useQuery(ask.me);
  const tabs = TABS.filter((each) => {
    const needs = NEEDS[each];
    return !needs || job.allowed.includes(needs);
  });
  const tab = tabs.find((each) => each === search.tab) ?? 'overview';
  const show = (next: Tab) =>
    void navigate({ search: (now) => ({ ...now, tab: next === 'overview' ? undefined : next }), replace: true });
  useKeys(Object.fromEntries(tabs.map((each, at) => [String(at + 1), () => show(each)])));
  return (
    <article className="pt-5">
      <Header job={job} />
      <TabBar label={texts.partsJob} className="mt-4">
        {tabs.map((each) => (
          <button
            key={each}
            type="button"
            aria-current={tab === each ? 'page' : undefined}
            onClick={() => show(each)}
            className="-mb-px border-b-2 border-transparent px-3 py-2 text-sm text-muted capitalize hover:text-text aria-[current]:border-accent aria-[current]:text-text"
          >
            {texts.tabs[each]}
          </button>
        ))}
      </TabBar>
      <div className="pt-4">
        {tab === 'overview' && <Overview job={job} />}
        {tab === 'log' && <JobLog job={job} height="max(22rem, calc(100dvh - 23.5rem))" />}
        {tab === 'events' && <EventList job={job.id} />}
        {tab === 'document' && <JobFile job={job} />}
        {tab === 'terminal' && (
          <Suspense fallback={<Skeleton />}>
            <TaskTerminal job={job} task={search.task} onTask={(task) => void navigate({ search: (now) => ({ ...now, task }), replace: true })} />
          </Suspense>
        )}
        {tab === 'profiles' && (
          <Suspense fallback={<Skeleton />}>
            <JobProfiles job={job} profile={search.profile} before={search.before} onChoice={(choice) => void navigate({ search: (now) => ({ ...now, ...choice }), replace: true })} />
          </Suspense>
        )}
        {tab === 'outputs' && (
          <Suspense fallback={<Skeleton />}>
            <JobOutputs job={job} />
          </Suspense>
        )}
      </div>
      <p className="pt-4">
        <CommandLine line={commandOf(tab, job, refOf(job, me?.user), search.task, search.attempt)} className="-ml-1.5" />
      </p>
    </article>
  );
}

function commandOf(tab: Tab, job: JobDetail, ref: string, task = '', attempt = ''): string {
  const more = task ? [task] : [];
  if (tab === 'log') return jobLine('logs', ref, ...more, ...(attempt ? ['--attempt', attempt] : ['-f']));
  if (tab === 'events') return jobLine('events', ref);
  if (tab === 'document') return `${jobLine('get', ref)} ${job.allowed.includes('environment') ? '--file' : '-o yaml'}`;
  if (tab === 'profiles') return jobLine('profile', ref, '--all');
  if (tab === 'outputs') return jobLine('outputs', ref);
  if (tab === 'terminal') return jobLine('exec', ref, task || `${job.roles[0]?.name ?? 'worker'}-0`);
  return jobLine(job.state === 'waiting' ? 'explain' : 'get', ref);
}

function Header({ job }: { job: JobDetail }) {
  const ended = job.endedAt !== null;
  const held = heldOf(job);
  const [tagging, setTagging] = useState(false);
  return (
    <header>
      <div className="flex flex-wrap items-start gap-x-6 gap-y-3">
        <div className="min-w-0">
          <h1 className="text-xl font-semibold tracking-tight break-words">{job.name}</h1>
          <p className="flex flex-wrap items-baseline gap-x-2 text-sm text-muted">
            <span>
              {job.user} · {job.queue} · {job.jobType}
            </span>
            <CopyWord text={job.id} />
            {job.tags.map((tag) => (
              <Link key={tag} to="/" search={{ tag }} className="text-xs underline underline-offset-2">
                {tag.startsWith('array:') ? texts.theWholeArray : tag}
              </Link>
            ))}
            {job.allowed.includes('tag') && (
              <button type="button" className="link text-xs" onClick={() => setTagging(true)}>
                {job.tags.length > 0 ? texts.changeTags : texts.addTags}
              </button>
            )}
          </p>
          {tagging && <TagMany jobs={[job]} onClose={() => setTagging(false)} onDone={() => setTagging(false)} />}
        </div>
        <span className="grow" />
        <JobActions job={job} />
      </div>
      <dl className="mt-4 flex flex-wrap gap-x-9 gap-y-3">
        <Fact label={texts.state}>
          <Status state={job.state} />
        </Fact>
        <Fact label={ended ? texts.ran : texts.runningFor}>
          <Span from={job.startedAt} to={job.endedAt} />
        </Fact>
        <Fact label={texts.waited}>
          <Sum seconds={job.waitedSeconds} since={job.waitingSince} />
        </Fact>
        <Fact label={ended ? texts.tasksSucceeded : texts.tasksRunning}>
          {number(ended ? job.tasks.succeeded : job.tasks.running)}
          <span className="text-muted"> {fill(texts.of, { total: number(job.tasks.total) })}</span>
        </Fact>
        <Fact label={texts.devices}>
          {held ?? (job.devices || '–')}
          {held !== null && <span className="text-muted"> {fill(texts.ofRow, { devices: job.devices })}</span>}
        </Fact>
        <Fact label={texts.retries}>
          {job.retries}
          {job.taskRetries > 0 && <span className="text-muted"> {counted(texts.ofSingleTasks, job.taskRetries)}</span>}
          <span className="text-muted"> · {job.retriesLeft === null ? texts.noLimit : counted(texts.left, job.retriesLeft)}</span>
        </Fact>
        {!ended && job.checkpointedAt && (
          <Fact label={texts.workSaved}>
            <Ago at={job.checkpointedAt} />
          </Fact>
        )}
        {job.work && (
          <Fact label={texts.progress}>
            <WorkDone work={job.work} />
          </Fact>
        )}
        <Fact label={texts.priority}>{job.priority}</Fact>
        <Fact label={texts.submitted}>
          <Ago at={job.createdAt} />
        </Fact>
      </dl>
    </header>
  );
}

function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div>
      <dt className="label">{label}</dt>
      <dd className="text-base font-medium">{children}</dd>
    </div>
  );
}
