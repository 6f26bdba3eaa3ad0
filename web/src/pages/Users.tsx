/** The accounts, for administrators: searched, made, changed, disabled and deleted. */

import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import * as teams from '../api/teams';
import type { UserView } from '../api/types';
import { CommandLine } from '../components/Copy';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { PeopleTabs } from '../components/PeopleTabs';
import { SearchField } from '../components/SearchField';
import { Ago } from '../components/Time';
import { UserDialog } from '../components/UserDialog';
import { UserQuestion, type UserAction } from '../components/UserQuestion';
import { useTitle } from '../components/useTitle';
import { useKeys } from '../lib/keys';
import { found } from '../lib/people';
import { counts } from '../texts/english/counts';
import { people as texts } from '../texts/english/people';
import { counted, fill, number } from '../texts/fill';

const route = getRouteApi('/frame/users');
/** Rows that are drawn before somebody asks for more. */
const DRAWN = 100;

export function Users() {
  const { q = '' } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useQuery(teams.users);
  const [editing, setEditing] = useState<UserView | 'new' | null>(null);
  const [asking, setAsking] = useState<{ name: string; action: UserAction } | null>(null);
  const [drawn, setDrawn] = useState(DRAWN);
  useTitle(texts.users);
  useKeys({ n: () => list.data && setEditing('new') });
  const shown = found(list.data ?? [], q);
  const saved = (name: string, made: boolean) => {
    setEditing(null);
    if (made) setAsking({ name, action: 'link' });
  };
  return (
    <section className="pt-3">
      <h1 className="sr-only">{texts.users}</h1>
      <PeopleTabs />
      {list.error && !list.data && <Fault error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && !list.error && <Skeleton rows={8} />}
      {list.data && (
        <>
          <div className="flex flex-wrap items-center gap-3 py-2.5" role="search">
            <SearchField label={texts.searchNameAddress} value={q} onChange={(next) => void navigate({ search: { q: next || undefined }, replace: true })} />
            <span role="status" className="text-xs text-muted">
              {q ? fill(texts.of, { shown: number(shown.length), users: counted(counts.users, list.data.length) }) : counted(counts.users, list.data.length)}
            </span>
            <span className="grow" />
            <button type="button" className="btn" onClick={() => setEditing('new')}>
              {texts.newUser}
            </button>
          </div>
          {shown.length === 0 ? (
          <Empty title={texts.userFound} line="corral users add NAME">
            {texts.searchPartName}
          </Empty>
        ) : <Table users={shown.slice(0, drawn)} onEdit={setEditing} onAsk={setAsking} />}
          {shown.length > drawn && (
            <p className="pt-3">
              <button type="button" className="btn" onClick={() => setDrawn(drawn + DRAWN)}>
                {texts.showMore}
              </button>
            </p>
          )}
          <p className="pt-4">
            <CommandLine line="corral users" className="ml-1" />
          </p>
        </>
      )}
      {editing && <UserDialog of={editing === 'new' ? null : editing} onDone={saved} onClose={() => setEditing(null)} />}
      {asking && <UserQuestion {...asking} onClose={() => setAsking(null)} />}
    </section>
  );
}

interface TableProps {
  users: UserView[];
  onEdit: (user: UserView) => void;
  onAsk: (asked: { name: string; action: UserAction }) => void;
}

function Table({ users, onEdit, onAsk }: TableProps) {
  return (
    <table className="grid-table">
      <thead>
        <tr>
          <th>{texts.name}</th>
          <th className="max-sm:hidden">{texts.role}</th>
          <th className="max-md:hidden">{texts.groups}</th>
          <th className="max-lg:hidden">{texts.eMail}</th>
          <th className="num max-lg:hidden">{texts.highestPriority}</th>
          <th className="max-lg:hidden">{texts.created}</th>
          <th>
            <span className="sr-only">{texts.actions}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {users.map((user) => (
          <tr key={user.name} data-user={user.name} className="hover:bg-sunken">
            <td className="max-w-40 truncate">
              <span className="font-medium">{user.name}</span>
              {user.disabled && <span className="pl-2 text-xs text-wait">{texts.disabled}</span>}
            </td>
            <td className="text-muted max-sm:hidden">{user.role === 'admin' ? texts.administrator : texts.user}</td>
            <td className="max-w-60 truncate max-md:hidden">{user.groups.join(', ') || <span className="text-muted">{texts.default}</span>}</td>
            <td className="max-w-60 truncate text-muted max-lg:hidden">{user.email || '–'}</td>
            <td className="num text-muted max-lg:hidden">{user.maxPriority ?? '–'}</td>
            <td className="text-muted max-lg:hidden">
              <Ago at={user.createdAt} />
            </td>
            <td>
              <span className="flex flex-wrap justify-end gap-x-3">
                <Word action="edit" name={user.name} onClick={() => onEdit(user)} />
                <Word action="link" name={user.name} onClick={() => onAsk({ name: user.name, action: 'link' })} />
                <Word action={user.disabled ? 'enable' : 'disable'} name={user.name} onClick={() => onAsk({ name: user.name, action: user.disabled ? 'enable' : 'disable' })} />
                <Word action="delete" grave name={user.name} onClick={() => onAsk({ name: user.name, action: 'delete' })} />
              </span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Word({ action, name, grave = false, onClick }: { action: keyof typeof texts.rowActions; name: string; grave?: boolean; onClick: () => void }) {
  return (
    <button type="button" className={`link ${grave ? '!text-fail' : ''}`} aria-label={fill(texts.rowActionsOf[action], { name })} onClick={onClick}>
      {texts.rowActions[action]}
    </button>
  );
}
