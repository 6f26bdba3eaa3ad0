/** Narrows a list to one queue and those below it; the choice is part of the page's address. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/queries';

export function QueueChoice({ queue, onChange }: { queue: string; onChange: (queue: string | undefined) => void }) {
  const { data } = useQuery(ask.queues);
  return (
    <select aria-label="Queue" className="field !w-auto" value={queue} onChange={(event) => onChange(event.target.value || undefined)}>
      <option value="">all queues</option>
      {data?.items.map((each) => (
        <option key={each.name} value={each.name}>
          {'\u2003'.repeat(each.standing?.depth ?? 0)}
          {each.name}
        </option>
      ))}
    </select>
  );
}
