/** What the server says is wrong with itself: its disk, its scheduler, its database. */

import { useQuery } from '@tanstack/react-query';
import { readiness } from '../api/queries';

export function Troubles() {
  const reasons = useQuery(readiness).data?.reasons ?? [];
  if (!reasons.length) return null;
  return (
    <div role="alert" className="border-b border-line bg-fail-ground px-3 py-2 text-sm sm:px-5">
      {reasons.map((reason) => (
        <p key={reason}>{reason}</p>
      ))}
    </div>
  );
}
