/** The pages about shares: what queues are owed, who waits in which order, who had to yield, and what would be otherwise. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import * as ask from '../api/queries';
import { pages } from '../texts/english/palette';
import { tabs as texts } from '../texts/english/shared';
import { TAB, TabBar } from './Tabs';

const WAYS = ['/queues', '/line', '/receipts', '/what-if', '/policy-shadow', '/estimates'] as const;

export function QueueTabs({ queue }: { queue: string }) {
  const admin = useQuery(ask.me).data?.role === 'admin';
  return (
    <TabBar label={pages['/queues'].name}>
      {WAYS.filter((to) => admin || to !== '/policy-shadow').map((to) => (
        <Link
          key={to}
          to={to}
          search={queue ? { queue } : {}}
          activeOptions={{ exact: true, includeSearch: false }}
          {...TAB}
        >
          {to === '/queues' ? texts.shares : pages[to].name}
        </Link>
      ))}
    </TabBar>
  );
}
