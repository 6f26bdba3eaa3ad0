/** Pages for addresses that lead nowhere and for faults, each with a way on. */

import { Link, type ErrorComponentProps } from '@tanstack/react-router';
import { Fault } from '../components/Notices';
import { useTitle } from '../components/useTitle';

export function NotFound() {
  useTitle('Not found');
  return (
    <div className="mx-auto max-w-xl px-5 py-20">
      <h1 className="text-xl font-semibold">There is no such page</h1>
      <p className="pt-2 text-muted">
        The address may be mistyped. A job is found by its name or id with the search of the{' '}
        <Link to="/" className="link">
          job list
        </Link>
        .
      </p>
    </div>
  );
}

export function Broken({ error, reset }: ErrorComponentProps) {
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
