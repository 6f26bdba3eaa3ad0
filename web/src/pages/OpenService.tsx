/** The page of a new tab: it asks for a one-time address of a service, and goes there. */

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useEffect } from 'react';
import * as ask from '../api/queries';
import { ENDED } from '../api/types';
import { CommandLine } from '../components/Copy';
import { Fault, Skeleton } from '../components/Notices';
import { useTitle } from '../components/useTitle';
import { jobLine } from '../lib/cli';
import { notebook as texts } from '../texts/english/notebook';
import { shared } from '../texts/english/shared';
import { fill, textOf } from '../texts/fill';

const route = getRouteApi('/frame/jobs/$ref/open/$task/$port');

export function OpenService() {
  const { ref, task, port } = route.useParams();
  useTitle(fill(texts.openOf, { port, task }));
  const { wait } = route.useSearch();
  const { data: job, error: unknown } = useQuery({ ...ask.job(ref), enabled: wait !== undefined });
  const runs = wait === undefined || (job?.tasks.running ?? 0) > 0;
  const { data, error, refetch } = useQuery({ ...ask.openedService(ref, task, port), enabled: runs });
  useEffect(() => {
    if (data) window.location.replace(data.url);
  }, [data]);
  return (
    <article className="pt-8">
      <h1 className="text-xl font-semibold tracking-tight">
        {fill(texts.openOf, { port, task })}
      </h1>
      {!runs && job && (
        <p role="status" className="pt-3 text-sm text-muted">
          {ENDED.has(job.state) ? fill(texts.hasEndedLog, { name: job.name, state: textOf(shared.states, job.state) }) : fill(texts.doesRunYet, { name: job.name, state: textOf(shared.states, job.state) })}
        </p>
      )}
      <div className="pt-4">
        {error || unknown ? <Fault error={error ?? unknown} retry={() => void refetch()} /> : !(job && ENDED.has(job.state)) && <Skeleton />}
      </div>
      <p className="pt-4">
        <CommandLine line={jobLine('open', ref, task, port)} className="-ml-1.5" />
      </p>
      <p className="pt-4 text-sm">
        <Link to="/jobs/$ref" params={{ ref }} className="link">
          {texts.backJob}
        </Link>
      </p>
    </article>
  );
}
