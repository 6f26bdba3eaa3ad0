/** Pages for addresses that lead nowhere and for faults, each with a way on. */

import { Link, type ErrorComponentProps } from '@tanstack/react-router';
import { useEffect } from 'react';
import { Fault } from '../components/Notices';
import { useTitle } from '../components/useTitle';
import { answers, isOutage } from '../lib/offline';
import { lost } from '../texts/english/frame';
import { fill, filled } from '../texts/fill';

export function NotFound() {
  useTitle(lost.notFound);
  return (
    <main className="mx-auto max-w-xl px-5 py-20">
      <h1 className="text-xl font-semibold">{lost.noPage}</h1>
      <p className="pt-2 text-muted">
        {filled(lost.mistyped, {
          list: (
            <Link to="/" className="link">
              {lost.list}
            </Link>
          ),
        })}
      </p>
    </main>
  );
}

export function Broken(props: ErrorComponentProps) {
  return isOutage(props.error) ? <Outage /> : <Fallen {...props} />;
}

/** Shown while the server does not answer; once it does, the page is loaded anew, whatever version the server has by then. */
function Outage() {
  useTitle(lost.noConnection);
  useEffect(() => {
    const leaving = new AbortController();
    void answers(leaving.signal).then(() => location.reload());
    return () => leaving.abort();
  }, []);
  return (
    <div role="status" className="mx-auto max-w-xl px-5 py-20">
      <h1 className="text-xl font-semibold">{lost.noAnswer}</h1>
      <p className="pt-2 text-muted">
        {fill(lost.comesBack, { command: 'corral up' })}
      </p>
    </div>
  );
}

function Fallen({ error, reset }: ErrorComponentProps) {
  useTitle(lost.fault);
  return (
    <div className="mx-auto max-w-xl px-5 py-20">
      <h1 className="text-xl font-semibold">{lost.notShown}</h1>
      <Fault
        error={error}
        retry={() => {
          reset();
          location.reload();
        }}
      />
      <p className="text-sm text-muted">{fill(lost.unaffected, { command: 'corral ls' })}</p>
    </div>
  );
}
