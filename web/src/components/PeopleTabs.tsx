/** The pages about who may do what: accounts for administrators, groups for everybody. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import * as ask from '../api/queries';

const WAYS = [
  ['/users', 'Users'],
  ['/users/batch', 'Many at once'],
  ['/groups', 'Groups'],
] as const;

export function PeopleTabs() {
  const { data: me } = useQuery(ask.me);
  const ways = WAYS.filter(([to]) => to === '/groups' || me?.role === 'admin');
  return (
    <nav aria-label="Users and groups" className="flex gap-1 overflow-x-auto border-b border-line-strong">
      {ways.map(([to, word]) => (
        <Link
          key={to}
          to={to}
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
