/** One group: who is in it and what they get by it; administrators change both. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import * as ask from '../api/queries';
import * as teams from '../api/teams';
import type { GroupView } from '../api/types';
import { quote } from '../lib/cli';
import { ADMIN_GROUP, DEFAULT_GROUP } from '../lib/people';
import { counts } from '../texts/english/counts';
import { people as texts } from '../texts/english/people';
import { counted, fill } from '../texts/fill';
import { CommandLine } from './Copy';
import { DeleteGroup, GroupDialog } from './GroupDialog';
import { Granted } from './Granted';
import { Fault } from './Notices';
import { useGroupChange, type GroupChange } from './useGroupChange';

export function GroupDetail({ group, admin, onGone }: { group: GroupView; admin: boolean; onGone: () => void }) {
  const [asking, setAsking] = useState<'edit' | 'delete' | null>(null);
  const change = useGroupChange();
  const send = (said: GroupChange) => change.mutate({ group: group.name, change: said });
  const builtIn = group.name === ADMIN_GROUP || group.name === DEFAULT_GROUP;
  return (
    <section aria-label={fill(texts.groupNamed, { name: group.name })}>
      <div className="flex items-end gap-3 border-b border-line pb-1.5">
        <h2 className="grow truncate text-sm font-semibold">
          {group.name} {group.admin && <span className="pl-1 text-xs font-normal text-muted">{texts.membersAdministrators}</span>}
        </h2>
        {admin && (
          <button type="button" className="btn !h-7" onClick={() => setAsking('edit')}>
            {texts.editGroup}
          </button>
        )}
        {admin && !builtIn && (
          <button type="button" className="btn btn-grave !h-7" onClick={() => setAsking('delete')}>
            {texts.deleteGroup}
          </button>
        )}
      </div>
      {(group.description || group.externalName) && (
        <p className="pt-2 text-sm text-muted">
          {group.description} {group.externalName && fill(texts.signProvider, { externalName: group.externalName })}
        </p>
      )}
      {group.maxPriority !== null && <p className="pt-2 text-sm text-muted">{fill(texts.jobsMembersHave, { maxPriority: group.maxPriority })}</p>}
      {change.error && <Fault error={change.error} />}
      <Members group={group} admin={admin} pending={change.isPending} send={send} />
      <Grants group={group} admin={admin} pending={change.isPending} send={send} />
      <p className="pt-3">
        <CommandLine line={`corral groups show ${quote(group.name)}`} className="-ml-1.5" />
      </p>
      {asking === 'edit' && <GroupDialog of={group} onDone={() => setAsking(null)} onClose={() => setAsking(null)} />}
      {asking === 'delete' && <DeleteGroup group={group} onDone={onGone} onClose={() => setAsking(null)} />}
    </section>
  );
}

interface PartProps {
  group: GroupView;
  admin: boolean;
  pending: boolean;
  send: (change: GroupChange) => void;
}

function Members({ group, admin, pending, send }: PartProps) {
  const mayChange = admin && group.name !== DEFAULT_GROUP;
  const { data: users } = useQuery({ ...teams.users, enabled: mayChange });
  const more = group.memberCount - group.members.length;
  return (
    <>
      <Granted
        label={counted(counts.members, group.memberCount)}
        items={group.members}
        offered={mayChange ? (users ?? []).map((user) => user.name) : null}
        words={texts.memberWords}
        none={texts.noMembers}
        pending={pending}
        onAdd={(user) => send({ add: [user] })}
        onRemove={(user) => send({ remove: [user] })}
      />
      {more > 0 && <p className="text-xs text-muted">{fill(texts.and, { others: counted(counts.others, more) })}</p>}
      {group.name === DEFAULT_GROUP && <p className="text-xs text-muted">{texts.hasEveryAccount}</p>}
    </>
  );
}

const KINDS = ['queues', 'manages', 'storages'] as const;

function Grants({ group, admin, pending, send }: PartProps) {
  const { data: queues } = useQuery(ask.queues);
  const { data: storages } = useQuery({ ...teams.storages, enabled: admin });
  const names = { queues: queues?.items ?? [], manages: queues?.items ?? [], storages: storages?.items ?? [] };
  return KINDS.map((kind) => (
    <Granted
      key={kind}
      label={texts.grantWords[kind].label}
      items={group[kind]}
      offered={admin ? [...names[kind].map((each) => each.name), '*'] : null}
      words={texts.grantWords[kind]}
      none={texts.grantWords[kind].none}
      pending={pending}
      show={(name) => <Named kind={kind} name={name} />}
      onAdd={(name) => send({ grant: { [kind]: [name] } })}
      onRemove={(name) => send({ revoke: { [kind]: [name] } })}
    />
  ));
}

function Named({ kind, name }: { kind: 'queues' | 'manages' | 'storages'; name: string }) {
  if (name === '*') return texts.allNames;
  if (kind === 'storages')
    return (
      <Link to="/storages/$name" params={{ name }} className="hover:underline">
        {name}
      </Link>
    );
  return (
    <Link to="/queues" search={{ queue: name }} className="hover:underline">
      {name}
    </Link>
  );
}
