/** The page of a new tab: it asks for a one-time address of a service, and goes there. */

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useEffect } from 'react';
import * as ask from '../api/queries';
import { Fault, Skeleton } from '../components/Notices';
import { useTitle } from '../components/useTitle';

const route = getRouteApi('/frame/jobs/$ref/open/$task/$port');

export function OpenService() {
  const { ref, task, port } = route.useParams();
  useTitle(`Open ${port} of ${task}`);
  const { data, error, refetch } = useQuery(ask.openedService(ref, task, port));
  useEffect(() => {
    if (data) window.location.replace(data.url);
  }, [data]);
  return (
    <article className="pt-8">
      <h1 className="text-xl font-semibold tracking-tight">
        Open {port} of {task}
      </h1>
      <div className="pt-4">{error ? <Fault error={error} retry={() => void refetch()} /> : <Skeleton />}</div>
      <p className="pt-4 text-sm">
        <Link to="/jobs/$ref" params={{ ref }} className="link">
          Back to the job
        </Link>
      </p>
    </article>
  );
}
