/** Pages for addresses that lead nowhere and for faults, each with a way on. */

import { Link, type ErrorComponentProps } from '@tanstack/react-router';
import { useEffect } from 'react';
import { Fault } from '../components/Notices';
import { useTitle } from '../components/useTitle';
import { answers, isOutage } from '../lib/offline';

export function NotFound() {
  useTitle('Not found');
  return (
    <main className="mx-auto max-w-xl px-5 py-20">
      <h1 className="text-xl font-semibold">There is no such page</h1>
      <p className="pt-2 text-muted">
        The address may be mistyped. A job is found by its name or id with the search of the{' '}
        <Link to="/" className="link">
          job list
        </Link>
        .
      </p>
    </main>
  );
}

export function Broken(props: ErrorComponentProps) {
  return isOutage(props.error) ? <Outage /> : <Fallen {...props} />;
}

/** Shown while the server does not answer; once it does, the page is loaded anew, whatever version the server has by then. */
function Outage() {
  useTitle('No connection');
  useEffect(() => {
    const leaving = new AbortController();
    void answers(leaving.signal).then(() => location.reload());
    return () => leaving.abort();
  }, []);
  return (
    <div role="status" className="mx-auto max-w-xl px-5 py-20">
      <h1 className="text-xl font-semibold">The server does not answer; trying again</h1>
      <p className="pt-2 text-muted">
        This page comes back by itself. Jobs that run go on. On the server&rsquo;s machine, corral up starts the server.
      </p>
    </div>
  );
}

function Fallen({ error, reset }: ErrorComponentProps) {
  useTitle('Something went wrong');
  return (
    <div className="mx-auto max-w-xl px-5 py-20">
      <h1 className="text-xl font-semibold">This page could not be shown</h1>
      <Fault
        error={error}
        retry={() => {
          reset();
          location.reload();
        }}
      />
      <p className="text-sm text-muted">Jobs are not affected. The command line works without the portal: corral ls</p>
    </div>
  );
}
