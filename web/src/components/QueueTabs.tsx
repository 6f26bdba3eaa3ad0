/** The pages about shares: what queues are owed, who waits in which order, who had to yield, and what would be otherwise. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import * as ask from '../api/queries';
import { pages } from '../texts/english/palette';
import { tabs as texts } from '../texts/english/shared';

const WAYS = ['/queues', '/line', '/receipts', '/what-if', '/policy-shadow', '/estimates'] as const;

/** On a narrow screen the present page's tab may lie beyond the edge. */
function showPresent(nav: HTMLElement | null) {
  nav?.querySelector('[aria-current]')?.scrollIntoView({ inline: 'nearest', block: 'nearest' });
}

export function QueueTabs({ queue }: { queue: string }) {
  const admin = useQuery(ask.me).data?.role === 'admin';
  return (
    <nav aria-label={pages['/queues'].name} ref={showPresent} className="flex gap-1 overflow-x-auto border-b border-line-strong">
      {WAYS.filter((to) => admin || to !== '/policy-shadow').map((to) => (
        <Link
          key={to}
          to={to}
          search={queue ? { queue } : {}}
          activeOptions={{ exact: true, includeSearch: false }}
          className="-mb-px border-b-2 border-transparent px-3 py-2 text-sm whitespace-nowrap text-muted hover:text-text"
          activeProps={{ className: '!border-accent !text-text', 'aria-current': 'page' }}
        >
          {to === '/queues' ? texts.shares : pages[to].name}
        </Link>
      ))}
    </nav>
  );
}
