/** One storage: what is in its folder, and for administrators which groups have it and how it is changed. */

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import * as ask from '../api/queries';
import * as teams from '../api/teams';
import type { StorageView } from '../api/types';
import { ChangeQuestion } from '../components/ChangeQuestion';
import { CommandLine } from '../components/Copy';
import { FileTable, type Lead } from '../components/FileTable';
import { Granted } from '../components/Granted';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { StorageDialog } from '../components/StorageDialog';
import { useGroupChange } from '../components/useGroupChange';
import { useTitle } from '../components/useTitle';
import { quote } from '../lib/cli';
import { ADMIN_GROUP } from '../lib/people';
import { typeLabel } from '../lib/storageform';
import { storages as texts } from '../texts/english/storages';
import { fill, filled } from '../texts/fill';
import { access } from './Storages';

const route = getRouteApi('/frame/storages/$name');

/** The line of a job file that names a storage. */
const lineOf = (name: string) => `storages: [${name}]`;

export function Storage() {
  const { name } = route.useParams();
  const { path = '', file = '' } = route.useSearch();
  const lead = useMemo(() => leadOf(name), [name]);
  const { data: me } = useQuery(ask.me);
  const list = useQuery(teams.storages);
  const storage = list.data?.items.find((each) => each.name === name);
  useTitle(fill(texts.storageNamed, { name }));
  return (
    <section className="pt-5">
      <div className="flex flex-wrap items-baseline gap-x-3 gap-y-2">
        <h1 className="min-w-0 truncate text-xl font-semibold tracking-tight">{name}</h1>
        {storage && <span className="text-sm text-muted">{`${typeLabel(storage.type)} · ${access(storage)}`}</span>}
        <span className="grow" />
        {storage && me?.role === 'admin' && <Changes name={name} />}
      </div>
      {storage?.description && <p className="pt-1 text-sm">{storage.description}</p>}
      {storage && me?.role === 'admin' && <Groups storage={storage} />}
      <h2 className="heading mt-5">{texts.files}</h2>
      {list.isPending && <Skeleton />}
      {storage && !storage.browsable ? (
        <Empty title={texts.tasksSee}>{texts.machinesMountTasks}</Empty>
      ) : (
        list.data && (
          <FileTable key={path} place={teams.ofStorage(name)} name={name} path={path} file={file} Lead={lead}>
            {filled(texts.jobWhoseFile, { code: <code>{lineOf(name)}</code> })}
          </FileTable>
        )
      )}
      <div className="flex flex-wrap justify-between gap-2 pt-4">
        <CommandLine line={`corral storages browse ${quote(name)}${path && ` ${quote(path)}`}`} className="-ml-1.5" />
        <Link to="/storages" className="link text-sm">
          {texts.allStorages}
        </Link>
      </div>
    </section>
  );
}

const leadOf =
  (name: string): Lead =>
  ({ path, file, className, label, children }) => (
    <Link to="/storages/$name" params={{ name }} search={{ path: path || undefined, file }} className={className} aria-label={label}>
      {children}
    </Link>
  );

function Changes({ name }: { name: string }) {
  const navigate = route.useNavigate();
  const { data: document } = useQuery(teams.currentDocument('Storage', name));
  const [asking, setAsking] = useState<'edit' | 'delete' | null>(null);
  const close = () => setAsking(null);
  return (
    <div className="flex gap-2">
      <button type="button" className="btn" disabled={!document} onClick={() => setAsking('edit')}>
        {texts.edit}
      </button>
      <button type="button" className="btn btn-grave" disabled={!document} onClick={() => setAsking('delete')}>
        {texts.delete}
      </button>
      {asking === 'edit' && document && <StorageDialog of={document} onClose={close} onDone={close} />}
      {asking === 'delete' && document && <ChangeQuestion of={document} action="delete" onClose={close} onDone={() => void navigate({ to: '/storages' })} />}
    </div>
  );
}

/** Which groups grant it; those that grant all storages are taken back where groups are. */
function Groups({ storage }: { storage: StorageView }) {
  const { data } = useQuery(teams.groups);
  const change = useGroupChange();
  const groups = (data?.items ?? []).filter((group) => group.name !== ADMIN_GROUP);
  const grants = (storages: string[]) => storages.includes(storage.name);
  const all = groups.filter((group) => group.storages.includes('*')).map((group) => group.name);
  return (
    <div className="pt-2">
      <Granted
        label={texts.grantedTo}
        items={groups.filter((group) => grants(group.storages)).map((group) => group.name)}
        offered={groups.map((group) => group.name).filter((name) => !all.includes(name))}
        words={texts.groupWords}
        none={all.length > 0 ? texts.noGroupByName : texts.noGroupAtAll}
        pending={change.isPending}
        show={(group) => (
          <Link to="/groups" search={{ group }} className="hover:underline">
            {group}
          </Link>
        )}
        onAdd={(group) => change.mutate({ group, change: { grant: { storages: [storage.name] } } })}
        onRemove={(group) => change.mutate({ group, change: { revoke: { storages: [storage.name] } } })}
      />
      {all.length > 0 && <p className="text-xs text-muted">{fill(texts.groupsAllStorages, { all: all.join(', ') })}</p>}
      {change.error && <Fault error={change.error} />}
    </div>
  );
}
