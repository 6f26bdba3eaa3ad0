/** The pages about shares: what queues are owed, who waits in which order, who had to yield, and what would be otherwise. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import * as ask from '../api/queries';

const WAYS = [
  ['/queues', 'Shares'],
  ['/line', 'Waiting list'],
  ['/receipts', 'Receipts'],
  ['/what-if', 'What if'],
  ['/policy-shadow', 'Policy shadow'],
  ['/estimates', 'Estimates'],
] as const;

/** On a narrow screen the present page's tab may lie beyond the edge. */
function showPresent(nav: HTMLElement | null) {
  nav?.querySelector('[aria-current]')?.scrollIntoView({ inline: 'nearest', block: 'nearest' });
}

export function QueueTabs({ queue }: { queue: string }) {
  const admin = useQuery(ask.me).data?.role === 'admin';
  return (
    <nav aria-label="Queues" ref={showPresent} className="flex gap-1 overflow-x-auto border-b border-line-strong">
      {WAYS.filter(([to]) => admin || to !== '/policy-shadow').map(([to, word]) => (
        <Link
          key={to}
          to={to}
          search={queue ? { queue } : {}}
          activeOptions={{ exact: true, includeSearch: false }}
          className="-mb-px border-b-2 border-transparent px-3 py-2 text-sm whitespace-nowrap text-muted hover:text-text"
          activeProps={{ className: '!border-accent !text-text', 'aria-current': 'page' }}
        >
          {word}
        </Link>
      ))}
    </nav>
  );
}
