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
import { count } from '../lib/format';
import { useKeys } from '../lib/keys';
import { found } from '../lib/people';

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
  useTitle('Users');
  useKeys({ n: () => list.data && setEditing('new') });
  const shown = found(list.data ?? [], q);
  const saved = (name: string, made: boolean) => {
    setEditing(null);
    if (made) setAsking({ name, action: 'link' });
  };
  return (
    <section className="pt-3">
      <h1 className="sr-only">Users</h1>
      <PeopleTabs />
      {list.error && !list.data && <Fault error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && !list.error && <Skeleton rows={8} />}
      {list.data && (
        <>
          <div className="flex flex-wrap items-center gap-3 py-2.5" role="search">
            <SearchField label="Search by name, address or group" value={q} onChange={(next) => void navigate({ search: { q: next || undefined }, replace: true })} />
            <span role="status" className="text-xs text-muted">
              {q ? `${shown.length.toLocaleString('en')} of ${count(list.data.length, 'user')}` : count(list.data.length, 'user')}
            </span>
            <span className="grow" />
            <button type="button" className="btn" onClick={() => setEditing('new')}>
              New user
            </button>
          </div>
          {shown.length === 0 ? (
          <Empty title="No user is found" line="corral users add NAME">
            Search by a part of a name, an address or a group. New accounts are made one by one with New user, or many at once from a file.
          </Empty>
        ) : <Table users={shown.slice(0, drawn)} onEdit={setEditing} onAsk={setAsking} />}
          {shown.length > drawn && (
            <p className="pt-3">
              <button type="button" className="btn" onClick={() => setDrawn(drawn + DRAWN)}>
                Show more
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
          <th>Name</th>
          <th className="max-sm:hidden">Role</th>
          <th className="max-md:hidden">Groups</th>
          <th className="max-lg:hidden">E-mail</th>
          <th className="num max-lg:hidden">Highest priority</th>
          <th className="max-lg:hidden">Created</th>
          <th>
            <span className="sr-only">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {users.map((user) => (
          <tr key={user.name} data-user={user.name} className="hover:bg-sunken">
            <td className="max-w-40 truncate">
              <span className="font-medium">{user.name}</span>
              {user.disabled && <span className="pl-2 text-xs text-wait">disabled</span>}
            </td>
            <td className="text-muted max-sm:hidden">{user.role === 'admin' ? 'administrator' : 'user'}</td>
            <td className="max-w-60 truncate max-md:hidden">{user.groups.join(', ') || <span className="text-muted">default</span>}</td>
            <td className="max-w-60 truncate text-muted max-lg:hidden">{user.email || '–'}</td>
            <td className="num text-muted max-lg:hidden">{user.maxPriority ?? '–'}</td>
            <td className="text-muted max-lg:hidden">
              <Ago at={user.createdAt} />
            </td>
            <td>
              <span className="flex flex-wrap justify-end gap-x-3">
                <Word word="edit" name={user.name} onClick={() => onEdit(user)} />
                <Word word="link" name={user.name} onClick={() => onAsk({ name: user.name, action: 'link' })} />
                <Word word={user.disabled ? 'enable' : 'disable'} name={user.name} onClick={() => onAsk({ name: user.name, action: user.disabled ? 'enable' : 'disable' })} />
                <Word word="delete" grave name={user.name} onClick={() => onAsk({ name: user.name, action: 'delete' })} />
              </span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const NAMES: Record<string, string> = { edit: 'Edit', link: 'Make a sign-in link for', disable: 'Disable', enable: 'Enable', delete: 'Delete' };

function Word({ word, name, grave = false, onClick }: { word: string; name: string; grave?: boolean; onClick: () => void }) {
  return (
    <button type="button" className={`link ${grave ? '!text-fail' : ''}`} aria-label={`${NAMES[word]} ${name}`} onClick={onClick}>
      {word}
    </button>
  );
}
