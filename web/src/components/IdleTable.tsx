/** Jobs with idle devices as a table: what each wastes, since when, and what is done about it. */

import { Link } from '@tanstack/react-router';
import type { IdleJob, Me } from '../api/types';
import { coming, mayExtend, standing, wastedHours } from '../lib/idle';
import { idle as texts } from '../texts/english/idle';
import { fill, filled } from '../texts/fill';
import { Ago, Until } from './Time';

interface Props {
  label: string;
  jobs: readonly IdleJob[];
  me: Pick<Me, 'user' | 'role'> | undefined;
  onExtend: (job: IdleJob) => void;
}

export function IdleTable({ label, jobs, me, onExtend }: Props) {
  const acts = jobs.some((job) => mayExtend(job, me));
  return (
    <table className="grid-table [&_td]:!align-top" aria-label={label}>
      <thead>
        <tr>
          <th className="w-[38%] max-md:w-auto">{texts.job}</th>
          <th className="w-32 max-sm:hidden">{texts.state}</th>
          <th className="num w-28 max-md:hidden">{texts.idleDevices}</th>
          <th className="w-28 max-md:hidden">{texts.since}</th>
          <th className="num w-40 max-sm:w-16">
            {filled(texts.wastedHours, { what: <span className="max-sm:sr-only"> {texts.deviceHours}</span> })}
          </th>
          <th className="max-sm:hidden">{texts.whatIsDone}</th>
          {acts && (
            <th>
              <span className="sr-only">{texts.actions}</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {jobs.map((job) => (
          <Row key={job.job} job={job} acts={acts} may={mayExtend(job, me)} onExtend={onExtend} />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  job: IdleJob;
  acts: boolean;
  may: boolean;
  onExtend: (job: IdleJob) => void;
}

function Row({ job, acts, may, onExtend }: RowProps) {
  return (
    <tr data-idle={job.job}>
      <td className="min-w-0">
        <Link to="/jobs/$ref" params={{ ref: job.job }} className="link [overflow-wrap:anywhere]">
          {job.name}
        </Link>
        <p className="text-xs text-muted [overflow-wrap:anywhere]">
          {job.user} · {job.queue}
        </p>
        <div className="text-xs sm:hidden">
          <Word job={job} /> <Then job={job} />
        </div>
        {job.reason && (
          <p className="max-w-[60ch] text-xs text-muted [overflow-wrap:anywhere]">
            {texts.moreTime}
            {job.extendedUntil && job.state === 'extended' && (
              <>
                {' '}
                {filled(texts.endsIn, { time: <Until at={job.extendedUntil} /> })}
              </>
            )}
            : {job.reason}
          </p>
        )}
      </td>
      <td className="max-sm:hidden">
        <Word job={job} />
      </td>
      <td className="num whitespace-nowrap max-md:hidden">
        {job.state === 'busy' ? <span className="text-faint">–</span> : fill(texts.of, { idle: job.idle, held: job.held })}
      </td>
      <td className="text-muted max-md:hidden">
        <Ago at={job.since} />
      </td>
      <td className="num font-medium">{wastedHours(job)}</td>
      <td className="text-muted max-sm:hidden">
        <Then job={job} />
      </td>
      {acts && (
        <td className="text-right whitespace-nowrap">
          {may && (
            <button type="button" className="link" onClick={() => onExtend(job)} aria-label={fill(texts.moreTimeFor, { name: job.name })}>
              {texts.moreTime}
            </button>
          )}
        </td>
      )}
    </tr>
  );
}

function Word({ job }: { job: IdleJob }) {
  const { word, tone } = standing(job);
  return <span className={`whitespace-nowrap ${tone}`}>{word}</span>;
}

function Then({ job }: { job: IdleJob }) {
  const { words, at, over } = coming(job);
  return (
    <>
      {words} {at && (over ? <Ago at={at} /> : <Until at={at} />)}
    </>
  );
}
