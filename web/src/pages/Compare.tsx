/** Two jobs beside each other: what became of them, how their documents differ, and their curves over each other. */

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { stringify } from 'yaml';
import * as overview from '../api/overview';
import * as ask from '../api/queries';
import { ENDED, type JobDetail } from '../api/types';
import { CommandLine } from '../components/Copy';
import { Diff } from '../components/Diff';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { Status } from '../components/Status';
import { Ago, Span, Sum } from '../components/Time';
import { useSettled } from '../components/useSettled';
import { useTitle } from '../components/useTitle';
import { jobLine } from '../lib/cli';
import { overlays, unified, type Overlay } from '../lib/compare';
import { short } from '../lib/series';
import { duration } from '../lib/time';
import { compare as texts } from '../texts/english/compare';
import { fill, filled, number } from '../texts/fill';

const route = getRouteApi('/frame/compare');
const WIDTH = 400;
const HEIGHT = 90;
/** Jobs that are offered for a comparison. */
const OFFERED = 12;

export function Compare() {
  const { job = '', with: other = '' } = route.useSearch();
  useTitle(texts.compareJobs);
  return (
    <section className="pt-5">
      <h1 className="pb-3 text-xl font-semibold tracking-tight">{texts.compareJobs}</h1>
      {!job || !other ? <Choice job={job} /> : <Both job={job} other={other} />}
    </section>
  );
}

/** Asks for the job that is missing; those of a like name come first. */
function Choice({ job }: { job: string }) {
  const navigate = route.useNavigate();
  const first = useQuery({ ...ask.job(job), enabled: job !== '' });
  const [text, setText] = useState<string | null>(null);
  const stem = first.data?.name.replace(/[-_.]?\d+$/, '') ?? '';
  const wanted = useSettled(text ?? stem);
  const found = useQuery(ask.jobsCalled(wanted, '', job === '' || first.data !== undefined));
  if (first.error) return <Fault error={first.error} />;
  const items = (found.data?.items ?? []).filter(({ id }) => id !== first.data?.id).slice(0, OFFERED);
  return (
    <>
      <p className="pb-3 text-sm text-muted">{first.data ? fill(texts.chooseJobCompared, { name: first.data.name }) : texts.chooseFirstTwo}</p>
      <input type="search" aria-label={texts.searchJobsName} className="field !w-80 max-sm:!w-full" value={text ?? stem} onChange={(event) => setText(event.target.value)} />
      {found.error && <Fault error={found.error} />}
      <ul aria-label={texts.jobsCompare} className="pt-3">
        {items.map((each) => (
          <li key={each.id} className="flex items-baseline gap-3 border-b border-line px-2.5 py-1.5 text-sm">
            <span className="w-24 shrink-0 text-xs">
              <Status state={each.state} />
            </span>
            <Link to="/compare" search={job ? { job, with: each.id } : { job: each.id }} className="min-w-0 grow truncate font-medium hover:underline">
              {each.name}
            </Link>
            <span className="text-xs text-muted">{each.user}</span>
          </li>
        ))}
      </ul>
      {found.data && items.length === 0 && (
        <Empty title={texts.otherJobCalled} line="corral ls">
          {filled(texts.searchPartJobs, { button: <button type="button" className="link" onClick={() => (setText(''), void navigate({ search: { job }, replace: true }))}>
            {texts.showNewestJobs}
          </button> })}
        </Empty>
      )}
      <p className="pt-4">
        <CommandLine line={jobLine('diff', first.data?.id ?? 'JOB', 'OTHER')} className="-ml-1.5" />
      </p>
    </>
  );
}

function Both({ job, other }: { job: string; other: string }) {
  const found = [useQuery(ask.job(job)), useQuery(ask.job(other))] as const;
  const fault = found.find((each) => each.error && !each.data);
  if (fault) return <Fault error={fault.error} retry={() => void fault.refetch()} />;
  const [one, two] = [found[0].data, found[1].data];
  if (!one || !two) return <Skeleton rows={10} />;
  return (
    <>
      <Facts jobs={[one, two]} />
      <h2 className="heading mt-6 mb-3">{texts.documents}</h2>
      <Diff diff={unified(stringify(one.document), stringify(two.document))} />
      <Curves jobs={[one, two]} />
      <p className="flex flex-wrap items-center gap-4 pt-4">
        <CommandLine line={jobLine('diff', one.id, two.id)} className="-ml-1.5" />
        <Link to="/compare" search={{ job: one.id }} className="link text-xs">
          {texts.compareAnotherJob}
        </Link>
        <Link to="/compare" search={{ job: two.id, with: one.id }} className="link text-xs">
          {texts.swapThem}
        </Link>
      </p>
    </>
  );
}

const FACTS: [keyof typeof texts.figures, (job: JobDetail) => ReactNode][] = [
  ['state', (job) => <Status state={job.state} />],
  ['exit', (job) => (job.exit && ENDED.has(job.state) ? fill(texts.exitOf, { phrase: job.exit.phrase, code: job.exit.code }) : '–')],
  ['user', (job) => job.user],
  ['queue', (job) => job.queue],
  ['priority', (job) => job.priority],
  ['tasks', (job) => number(job.tasks.total)],
  ['devices', (job) => job.devices || '–'],
  ['waited', (job) => <Sum seconds={job.waitedSeconds} since={job.waitingSince} />],
  ['ran', (job) => <Span from={job.startedAt} to={job.endedAt} />],
  ['retries', (job) => job.retries],
  ['tags', (job) => job.tags.join(', ') || '–'],
  ['submitted', (job) => <Ago at={job.createdAt} />],
];

function Facts({ jobs }: { jobs: [JobDetail, JobDetail] }) {
  return (
    <table className="grid-table" aria-label={texts.facts}>
      <thead>
        <tr>
          <td />
          {jobs.map((job, at) => (
            <th key={at} scope="col" className="w-[42%] !whitespace-normal [overflow-wrap:anywhere]">
              <Sample at={at} />
              <Link to="/jobs/$ref" params={{ ref: job.id }} className="text-sm text-text hover:underline">
                {job.name}
              </Link>{' '}
              <span className="font-mono font-normal">{job.id}</span>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {FACTS.map(([name, of]) => (
          <tr key={name}>
            <th scope="row">{texts.figures[name]}</th>
            {jobs.map((job, at) => (
              <td key={at} className="[overflow-wrap:anywhere]">{of(job)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const COLOURS = ['var(--accent)', 'var(--wait)'];
const DASHES = [undefined, '6 4'];

/** How the curve of a job looks: its colour, and broken or not. */
function Sample({ at }: { at: number }) {
  return (
    <svg viewBox="0 0 22 6" width={22} height={6} aria-hidden className="mr-1.5 inline-block">
      <path d="M0 3h22" stroke={COLOURS[at]} strokeWidth={2} strokeDasharray={DASHES[at]} />
    </svg>
  );
}

function Curves({ jobs }: { jobs: [JobDetail, JobDetail] }) {
  const [one, two] = jobs;
  const first = useQuery(overview.series(one.id, one.createdAt, one.endedAt, !ENDED.has(one.state)));
  const second = useQuery(overview.series(two.id, two.createdAt, two.endedAt, !ENDED.has(two.state)));
  const fault = first.error ?? second.error;
  const runs = first.data && second.data ? ([
    { start: one.startedAt ?? one.createdAt, answer: first.data },
    { start: two.startedAt ?? two.createdAt, answer: second.data },
  ] as const) : null;
  const shown = runs ? overlays([...runs], WIDTH, HEIGHT) : [];
  return (
    <section aria-label={texts.figuresOverEach}>
      <h2 className="heading mt-6 mb-3">
        {texts.figuresOverEach} <span className="text-xs font-normal text-muted">{texts.eachFromStart}</span>
      </h2>
      {fault && <Fault error={fault} />}
      {!runs && !fault && <Skeleton rows={3} />}
      {runs && shown.length === 0 && <p className="text-sm text-muted">{texts.neitherJobHas}</p>}
      <Figures shown={shown.filter((each) => !each.measured)} names={[one.name, two.name]} />
      {shown.some((each) => each.measured) && (
        <details className="pt-3">
          <summary className="cursor-pointer text-xs text-muted">{texts.whatTheirTasks}</summary>
          <Figures shown={shown.filter((each) => each.measured)} names={[one.name, two.name]} />
        </details>
      )}
    </section>
  );
}

function Figures({ shown, names }: { shown: Overlay[]; names: [string, string] }) {
  return (
    <ul className="grid gap-x-8 gap-y-5 pt-2 sm:grid-cols-2 xl:grid-cols-3">
      {shown.map((each) => (
        <li key={each.name} className="min-w-0">
          <Figure overlay={each} names={names} />
        </li>
      ))}
    </ul>
  );
}

function Figure({ overlay: { name, curves, low, high, seconds }, names }: { overlay: Overlay; names: [string, string] }) {
  const said = curves.map((curve, at) => fill(curve ? texts.last : texts.none, { job: names[at]!, value: curve ? short(curve.last) : '' })).join(', ');
  return (
    <figure>
      <figcaption className="flex justify-between gap-3 text-xs">
        <span className="truncate">{name}</span>
        <span className="whitespace-nowrap">{curves.map((curve) => (curve ? short(curve.last) : '–')).join(' · ')}</span>
      </figcaption>
      <svg role="img" aria-label={fill(texts.curves, { name, curves: said })} viewBox={`0 -2 ${WIDTH} ${HEIGHT + 4}`} preserveAspectRatio="none" width="100%" height={HEIGHT} className="block border-b border-line-strong">
        {curves.map(
          (curve, at) =>
            curve && <path key={at} d={curve.line} fill="none" stroke={COLOURS[at]} strokeDasharray={DASHES[at]} strokeWidth={1.5} strokeLinecap="round" vectorEffect="non-scaling-stroke" />,
        )}
      </svg>
      <p aria-hidden className="flex justify-between text-2xs text-muted">
        <span>
          {fill(texts.to, { low: short(low), high: short(high) })}
        </span>
        <span>{duration(Math.round(seconds))}</span>
      </p>
    </figure>
  );
}
