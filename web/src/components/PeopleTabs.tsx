/** The pages about who may do what: accounts for administrators, groups for everybody. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/queries';
import { pages } from '../texts/english/palette';
import { tabs as texts } from '../texts/english/shared';
import { Tabs } from './Tabs';

const ways = () =>
  [
    ['/users', pages['/users'].name],
    ['/users/batch', texts.many],
    ['/groups', pages['/groups'].name],
    ['/audit', pages['/audit'].name],
  ] as const;

export function PeopleTabs() {
  const { data: me } = useQuery(ask.me);
  return <Tabs label={texts.people} ways={ways().filter(([to]) => to === '/groups' || me?.role === 'admin')} />;
}
