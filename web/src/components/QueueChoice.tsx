/** Narrows a list to one queue and those below it; the choice is part of the page's address. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/queries';
import { shared as texts } from '../texts/english/shared';

export function QueueChoice({ queue, onChange }: { queue: string; onChange: (queue: string | undefined) => void }) {
  const { data } = useQuery(ask.queues);
  return (
    <select aria-label={texts.queue} className="field !w-auto" value={queue} onChange={(event) => onChange(event.target.value || undefined)}>
      <option value="">{texts.allQueues}</option>
      {data?.items.map((each) => (
        <option key={each.name} value={each.name}>
          {'\u2003'.repeat(each.standing?.depth ?? 0)}
          {each.name}
        </option>
      ))}
    </select>
  );
}
