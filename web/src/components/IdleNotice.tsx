/** Says on a job's page that its devices are idle, what comes when, and asks for more time. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import * as ask from '../api/monitoring';
import { ENDED, type IdleJob, type JobDetail } from '../api/types';
import { coming, idleWords } from '../lib/idle';
import { idle as texts } from '../texts/english/idle';
import { fill, filled } from '../texts/fill';
import { ExtendDialog } from './ExtendDialog';
import { Ago, Until } from './Time';

export function IdleNotice({ job }: { job: JobDetail }) {
  const { data: found } = useQuery({ ...ask.idleJob(job.id, !ENDED.has(job.state)), enabled: job.startedAt !== null });
  const [asking, setAsking] = useState(false);
  if (!found || (found.state === 'busy' && !found.actedAt)) return null;
  const may = found.state === 'warned' && !found.extendedAt && !found.dryRun && job.allowed.includes('extend-idle');
  return (
    <section aria-label={texts.idleDevices} className="border-l-[3px] border-wait bg-wait-ground px-4 py-3 text-sm">
      <p>
        <span className="text-wait">▲</span> {found.dryRun && texts.dryRun}
        <Said job={found} />
      </p>
      {found.reason && <p className="pt-1 text-muted [overflow-wrap:anywhere]">{fill(texts.reasonMoreTime, { reason: found.reason })}</p>}
      <p className="flex flex-wrap items-center gap-3 pt-2">
        {may && (
          <button type="button" className="btn !h-7" onClick={() => setAsking(true)}>
            {texts.askMoreTime}
          </button>
        )}
        <Link to="/idle" className="link text-xs">
          {texts.allJobsIdle}
        </Link>
      </p>
      {asking && <ExtendDialog job={found} onClose={() => setAsking(false)} />}
    </section>
  );
}

function Said({ job }: { job: IdleJob }) {
  const { words, at, over } = coming(job);
  if (over)
    return (
      <>
        {filled(texts.because, { words, time: <Ago at={at} /> })}
      </>
    );
  return (
    <>
      {filled(texts.began, { idleWords: idleWords(job), time: <Ago at={job.since} /> })}{' '}
      {at ? (
        <>
          {filled(texts.unlessUsed, { words, time: <Until at={at} /> })}
        </>
      ) : (
        words && texts.nothingMoreSaid
      )}
    </>
  );
}
