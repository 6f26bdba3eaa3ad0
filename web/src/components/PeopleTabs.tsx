/** The pages about who may do what: accounts for administrators, groups for everybody. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/queries';
import { Tabs } from './Tabs';

const WAYS = [
  ['/users', 'Users'],
  ['/users/batch', 'Many at once'],
  ['/groups', 'Groups'],
  ['/audit', 'Audit log'],
] as const;

export function PeopleTabs() {
  const { data: me } = useQuery(ask.me);
  return <Tabs label="Users and groups" ways={WAYS.filter(([to]) => to === '/groups' || me?.role === 'admin')} />;
}
