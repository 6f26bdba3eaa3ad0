/** Making an account, or changing one: address, groups, whether it is an administrator's, and the highest priority of its jobs. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call, part } from '../api/client';
import * as teams from '../api/teams';
import type { UserView } from '../api/types';
import { quote } from '../lib/cli';
import { ADMIN_GROUP, DEFAULT_GROUP } from '../lib/people';
import { people as texts } from '../texts/english/people';
import { fill } from '../texts/fill';
import { FormDialog, TextField, Tick } from './FormDialog';

interface Props {
  /** The one that is changed; null for a new one. */
  of: UserView | null;
  /** `made` says whether the account is new, so that it needs a sign-in link. */
  onDone: (name: string, made: boolean) => void;
  onClose: () => void;
}

export function UserDialog({ of, onDone, onClose }: Props) {
  const client = useQueryClient();
  const [name, setName] = useState(of?.name ?? '');
  const [email, setEmail] = useState(of?.email ?? '');
  const [admin, setAdmin] = useState(of?.role === 'admin');
  const [groups, setGroups] = useState<readonly string[]>(of?.groups ?? []);
  const [priority, setPriority] = useState(of?.maxPriority?.toString() ?? '');
  const role = admin ? 'admin' : 'user';
  const save = useMutation({
    mutationFn: async () => {
      const maxPriority = priority === '' ? '' : Number(priority);
      const change: Record<string, unknown> = {};
      if (role !== of?.role) change.role = role;
      if (of && email !== of.email) change.email = email;
      if (of && groups.join(' ') !== of.groups.join(' ')) change.groups = groups;
      if (maxPriority !== (of?.maxPriority ?? '')) change.maxPriority = maxPriority;
      if (!of) await call('/users', { method: 'POST', json: { name, role, groups, email, ...(priority !== '' && { maxPriority }) } });
      else if (Object.keys(change).length > 0) await call(`/users/${part(name)}`, { method: 'POST', json: change });
    },
    onSuccess: () => onDone(name, of === null),
    onSettled: () => client.invalidateQueries({ predicate: ({ queryKey: [kind] }) => kind === 'users' || kind === 'groups' || kind === 'me' }),
  });
  const toggle = (group: string) => setGroups(groups.includes(group) ? groups.filter((each) => each !== group) : [...groups, group]);
  const words = of ? ['corral users change', quote(of.name), role !== of.role && `--role ${role}`] : ['corral users add', quote(name || 'NAME'), admin && '--admin'];
  if (email !== (of?.email ?? '')) words.push(`--email ${quote(email)}`);
  if (priority !== (of?.maxPriority?.toString() ?? '')) words.push(`--max-priority ${priority === '' ? 'none' : priority}`);
  const line = [...words, ...(groups.join(' ') === of?.groups.join(' ') ? [] : groups.map((group) => `-g ${quote(group)}`))].filter(Boolean).join(' ');
  return (
    <FormDialog
      title={of ? fill(texts.editNamed, { name: of.name }) : texts.newUser}
      word={of ? texts.save : texts.makeIt}
      pending={save.isPending}
      error={save.error}
      line={line}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <div className="space-y-3">
        {!of && <TextField label={texts.name} first required max={126} value={name} onChange={setName} hint={texts.ada} />}
        <TextField label={texts.eMail} first={of !== null} max={254} value={email} onChange={setEmail} hint={texts.adaExampleOrg} />
        <GroupTicks chosen={groups} onToggle={toggle} />
        <TextField label={texts.highestPriorityJobs} type="number" value={priority} onChange={setPriority} hint={texts.groupsSay} />
        <Tick checked={admin} onChange={setAdmin}>
          {texts.administratorMayDo}
        </Tick>
      </div>
    </FormDialog>
  );
}

function GroupTicks({ chosen, onToggle }: { chosen: readonly string[]; onToggle: (group: string) => void }) {
  const { data } = useQuery(teams.groups);
  const names = (data?.items ?? []).map((group) => group.name).filter((name) => name !== DEFAULT_GROUP && name !== ADMIN_GROUP);
  const offered = [...new Set([...names, ...chosen])];
  return (
    <fieldset>
      <legend className="label pb-1">{texts.groupsWithoutOne}</legend>
      {offered.length === 0 && <p className="text-sm text-muted">{texts.thereGroupsYet}</p>}
      <div className="flex max-h-40 flex-wrap gap-x-4 gap-y-1 overflow-y-auto">
        {offered.map((name) => (
          <Tick key={name} checked={chosen.includes(name)} onChange={() => onToggle(name)}>
            {name}
          </Tick>
        ))}
      </div>
    </fieldset>
  );
}
