/** Why a job waits: the binding constraint, the numbers behind it, when it is likely to start, what would start it now, who is ahead. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import * as ask from '../api/queries';
import type { JobDetail, Reasons } from '../api/types';
import { toldApart } from '../lib/joblist';
import { counts } from '../texts/english/counts';
import { job as texts } from '../texts/english/job';
import { counted, fill, textOf } from '../texts/fill';
import { Outlook } from './Outlook';
import { Glyph, Status } from './Status';

export function Waiting({ job }: { job: JobDetail }) {
  const { data } = useQuery(ask.explanation(job.id, job.state === 'waiting'));
  const reasons = data?.reasons ?? job.reasons;
  const message = data?.message || reasons?.binding.message || job.waiting?.message;
  const called = toldApart([job, ...(data?.ahead ?? [])]);
  return (
    <section aria-label={texts.whyItWaits} className="border-l-[3px] border-wait bg-wait-ground px-4 py-3 text-sm">
      <h2 className="flex items-center gap-2 text-xs font-medium text-wait">
        <Glyph state="waiting" /> {texts.whyItWaits}
      </h2>
      <p className="pt-1 text-base">{message ?? texts.schedulerHasLooked}</p>
      {reasons && <Facts reasons={reasons} />}
      {reasons && !reasons.possible && !data?.estimate && <p className="pt-1 font-medium">{texts.canNeverStart}</p>}
      {data && <Outlook estimate={data.estimate} changes={data.changes} />}
      {job.dependsOn.length > 0 && <DependsOn jobs={job.dependsOn} />}
      {data && data.ahead.length > 0 && (
        <p className="pt-1 text-muted">
          {texts.aheadOfIt}{' '}
          {data.ahead.slice(0, 6).map((other, at) => (
            <span key={other.id}>
              {at > 0 && ', '}
              <Link to="/jobs/$ref" params={{ ref: other.id }} className="link">
                {called.get(other.id)}
              </Link>
            </span>
          ))}
          {data.ahead.length > 6 && ' '}
          {data.ahead.length > 6 && fill(texts.andOthers, { others: counted(counts.others, data.ahead.length - 6) })}
        </p>
      )}
    </section>
  );
}

const NAMED = 6;

function DependsOn({ jobs }: { jobs: readonly string[] }) {
  return (
    <ul aria-label={texts.jobsDepends} className="pt-1">
      {jobs.slice(0, NAMED).map((id) => (
        <Other key={id} id={id} />
      ))}
      {jobs.length > NAMED && <li>{fill(texts.andOthers, { others: counted(counts.others, jobs.length - NAMED) })}</li>}
    </ul>
  );
}

function Other({ id }: { id: string }) {
  const { data } = useQuery(ask.job(id));
  return (
    <li className="flex items-center gap-2">
      {data && <Status state={data.state} />}
      <Link to="/jobs/$ref" params={{ ref: id }} className="link">
        {data?.name ?? id}
      </Link>
    </li>
  );
}

export function Facts({ reasons }: { reasons: Reasons }) {
  const counts = Object.entries(reasons.binding.counts);
  return (
    <>
      {counts.length > 0 && (
        <dl className="flex flex-wrap gap-x-6 pt-2">
          {counts.map(([name, value]) => (
            <div key={name} className="flex items-baseline gap-1.5">
              <dt className="text-xs text-muted">{textOf(texts.needs, name)}</dt>
              <dd className="font-semibold">{value}</dd>
            </div>
          ))}
        </dl>
      )}
      {reasons.others.map((reason) => (
        <p key={reason.message} className="pt-1 text-muted">
          {reason.message}
        </p>
      ))}
    </>
  );
}
