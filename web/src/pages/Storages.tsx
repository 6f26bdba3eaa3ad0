/** The storages that the reader may use, and for administrators a new one. */

import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import * as ask from '../api/queries';
import * as teams from '../api/teams';
import type { StorageView } from '../api/types';
import { CommandLine } from '../components/Copy';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { StorageDialog } from '../components/StorageDialog';
import { useTitle } from '../components/useTitle';
import { typeLabel } from '../lib/storageform';
import { storages as texts } from '../texts/english/storages';

export function Storages() {
  const list = useQuery(teams.storages);
  const { data: me } = useQuery(ask.me);
  const navigate = useNavigate();
  const [making, setMaking] = useState(false);
  const admin = me?.role === 'admin';
  const found = list.data?.items ?? [];
  useTitle(texts.storages);
  return (
    <section className="pt-5">
      <div className="flex flex-wrap items-center gap-3 pb-3">
        <h1 className="text-xl font-semibold tracking-tight">{texts.storages}</h1>
        <span className="grow" />
        {admin && (
          <button type="button" className="btn" onClick={() => setMaking(true)}>
            {texts.newStorage}
          </button>
        )}
      </div>
      {list.error && !list.data && <Fault error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && <Skeleton rows={5} />}
      {list.data && found.length === 0 && (
        <Empty title={texts.thereStorageYou} line={admin ? 'corral apply storage.yaml' : undefined}>
          {admin ? texts.storageFolderFile : texts.storageGrantedGroups}
        </Empty>
      )}
      {found.length > 0 && <Table storages={found} admin={admin} />}
      <p className="pt-4">
        <CommandLine line="corral storages" className="ml-1" />
      </p>
      {making && <StorageDialog of={null} onClose={() => setMaking(false)} onDone={(name) => void navigate({ to: '/storages/$name', params: { name } })} />}
    </section>
  );
}

function Table({ storages, admin }: { storages: StorageView[]; admin: boolean }) {
  return (
    <table className="grid-table">
      <thead>
        <tr>
          <th>{texts.storage}</th>
          <th className="max-sm:hidden">{texts.type}</th>
          <th>{texts.whoSeesWhat}</th>
          <th className="max-lg:hidden">{texts.description}</th>
          {admin && <th className="max-md:hidden">{texts.grantedBy}</th>}
        </tr>
      </thead>
      <tbody>
        {storages.map((each) => (
          <tr key={each.name} data-storage={each.name} className="hover:bg-sunken">
            <td className="max-w-40 truncate">
              <Link to="/storages/$name" params={{ name: each.name }} className="font-medium hover:underline">
                {each.name}
              </Link>
            </td>
            <td className="text-muted max-sm:hidden">{typeLabel(each.type)}</td>
            <td>{access(each)}</td>
            <td className="max-w-96 truncate text-muted max-lg:hidden">{each.description || '–'}</td>
            {admin && <td className="max-w-60 truncate text-muted max-md:hidden">{each.groups.join(', ') || texts.noGroup}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** `one folder for all, read only, a default of yours`. */
export function access(storage: StorageView): string {
  const words = [storage.share ? texts.oneFolder : texts.ownFolders];
  if (storage.readOnly) words.push(texts.readOnlyWord);
  if (storage.default) words.push(texts.aDefault);
  return words.join(', ');
}
