/** The groups: every one for administrators, for others those that they are in. */

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import * as ask from '../api/queries';
import * as teams from '../api/teams';
import type { GroupView } from '../api/types';
import { CommandLine } from '../components/Copy';
import { GroupDetail } from '../components/GroupDetail';
import { GroupDialog } from '../components/GroupDialog';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { PeopleTabs } from '../components/PeopleTabs';
import { useTitle } from '../components/useTitle';
import { useKeys, useRowSteps } from '../lib/keys';
import { people as texts } from '../texts/english/people';
import { fill, number } from '../texts/fill';

const route = getRouteApi('/frame/groups');

export function Groups() {
  const { group: chosen = '' } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useQuery(teams.groups);
  const { data: me } = useQuery(ask.me);
  const [making, setMaking] = useState(false);
  const admin = me?.role === 'admin';
  const groups = list.data?.items ?? [];
  const shown = groups.find((each) => each.name === chosen);
  const choose = (group?: string) => void navigate({ search: { group }, replace: true });
  const step = useRowSteps(groups.map(({ name }) => name), chosen, choose);
  useTitle(texts.groups);
  useKeys({ j: () => step(1), k: () => step(-1), n: () => admin && setMaking(true) });
  return (
    <section className="pt-3">
      <h1 className="sr-only">{texts.groups}</h1>
      <PeopleTabs />
      <div className="grid gap-x-8 gap-y-6 pt-3 lg:grid-cols-[minmax(19rem,1fr)_minmax(0,1.6fr)]">
        <div className="min-w-0">
          {list.error && !list.data && <Fault error={list.error} retry={() => void list.refetch()} />}
          {list.isPending && <Skeleton rows={5} />}
          {list.data && groups.length === 0 && <Empty title={texts.youGroup}>{texts.groupGrantsQueues}</Empty>}
          {groups.length > 0 && <Table groups={groups} chosen={chosen} />}
          {admin && (
            <p className="pt-3">
              <button type="button" className="btn" onClick={() => setMaking(true)}>
                {texts.newGroup}
              </button>
            </p>
          )}
          {list.data && (
            <p className="pt-4">
              <CommandLine line="corral groups" className="-ml-1.5" />
            </p>
          )}
        </div>
        <div className="min-w-0">
          {shown && <GroupDetail key={shown.name} group={shown} admin={admin} onGone={() => choose()} />}
          {!shown && chosen && list.data && <p className="py-2 text-sm text-muted">{fill(texts.thereGroupYou, { chosen })}</p>}
          {!chosen && groups.length > 0 && <p className="py-2 text-sm text-muted max-lg:hidden">{texts.chooseGroupSee}</p>}
        </div>
      </div>
      {making && (
        <GroupDialog
          of={null}
          onClose={() => setMaking(false)}
          onDone={(name) => {
            setMaking(false);
            choose(name);
          }}
        />
      )}
    </section>
  );
}

function Table({ groups, chosen }: { groups: GroupView[]; chosen: string }) {
  return (
    <table className="grid-table">
      <thead>
        <tr>
          <th>{texts.group}</th>
          <th className="num w-16">{texts.members}</th>
          <th>{texts.grants}</th>
        </tr>
      </thead>
      <tbody>
        {groups.map((each) => (
          <tr key={each.name} data-group={each.name} className={each.name === chosen ? 'bg-accent-ground' : 'hover:bg-sunken'}>
            <td className="max-w-40 truncate">
              <Link to="/groups" search={{ group: each.name }} className="font-medium hover:underline" aria-current={each.name === chosen || undefined}>
                {each.name}
              </Link>
            </td>
            <td className="num">{number(each.memberCount)}</td>
            <td className="text-muted">{granted(each)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** `queues vision; manages speech; storages data`. */
function granted(group: GroupView): string {
  const words = (['queues', 'manages', 'storages'] as const).filter((kind) => group[kind].length > 0);
  const said = words.map((kind) => fill(texts.granted[kind], { names: group[kind].map((each) => (each === '*' ? texts.allOfThem : each)).join(', ') }));
  return said.join('; ') || texts.nothing;
}
