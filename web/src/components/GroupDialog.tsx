/** Making a group, changing what is said of it, and the question before it is deleted. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call, part } from '../api/client';
import type { GroupView } from '../api/types';
import { quote } from '../lib/cli';
import { ADMIN_GROUP } from '../lib/people';
import { counts } from '../texts/english/counts';
import { people as texts } from '../texts/english/people';
import { counted, fill } from '../texts/fill';
import { FormDialog, TextField, Tick } from './FormDialog';
import { useGroupChange } from './useGroupChange';

interface Props {
  /** The one that is changed; null for a new one. */
  of: GroupView | null;
  onDone: (name: string) => void;
  onClose: () => void;
}

export function GroupDialog({ of, onDone, onClose }: Props) {
  const client = useQueryClient();
  const [name, setName] = useState(of?.name ?? '');
  const [description, setDescription] = useState(of?.description ?? '');
  const [externalName, setExternalName] = useState(of?.externalName ?? '');
  const [admin, setAdmin] = useState(of?.admin ?? false);
  const [priority, setPriority] = useState(of?.maxPriority?.toString() ?? '');
  const bounded = priority !== (of?.maxPriority?.toString() ?? '');
  const change = useGroupChange();
  const make = useMutation({
    mutationFn: () => call<GroupView>('/groups', { method: 'POST', json: { name, description, ...(priority !== '' && { maxPriority: Number(priority) }) } }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['groups'] });
      onDone(name);
    },
  });
  const submit = () => {
    if (!of) return make.mutate();
    const said = { description, externalName, ...(admin !== of.admin && { admin }), ...(bounded && { maxPriority: priority === '' ? ('' as const) : Number(priority) }) };
    change.mutate({ group: of.name, change: said }, { onSuccess: () => onDone(of.name) });
  };
  const words = [
    of ? `corral groups change ${quote(of.name)}` : `corral groups make ${quote(name || 'NAME')}`,
    description !== (of?.description ?? '') && `--description ${quote(description)}`,
    externalName !== (of?.externalName ?? '') && `--external-name ${quote(externalName)}`,
    admin !== (of?.admin ?? false) && (admin ? '--admin' : '--no-admin'),
    bounded && `--max-priority ${priority === '' ? 'none' : priority}`,
  ];
  const line = words.filter(Boolean).join(' ');
  return (
    <FormDialog
      title={of ? fill(texts.editNamed, { name: of.name }) : texts.newGroup}
      word={of ? texts.save : texts.makeIt}
      pending={make.isPending || change.isPending}
      error={make.error ?? change.error}
      line={line}
      onSubmit={submit}
      onClose={onClose}
    >
      <div className="space-y-3">
        {!of && <TextField label={texts.name} first required max={126} value={name} onChange={setName} hint={texts.vision} />}
        <TextField label={texts.description} first={of !== null} value={description} onChange={setDescription} />
        {of && <TextField label={texts.whatSignProvider} value={externalName} onChange={setExternalName} />}
        <TextField label={texts.highestPriorityMembers} type="number" value={priority} onChange={setPriority} hint={texts.queueSays} />
        {of && of.name !== ADMIN_GROUP && (
          <Tick checked={admin} onChange={setAdmin}>
            {texts.membersAreAdministrators}
          </Tick>
        )}
      </div>
    </FormDialog>
  );
}

export function DeleteGroup({ group, onDone, onClose }: { group: GroupView; onDone: () => void; onClose: () => void }) {
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: () => call(`/groups/${part(group.name)}`, { method: 'DELETE' }),
    onSuccess: async () => {
      onDone();
      onClose();
      await client.invalidateQueries({ predicate: ({ queryKey: [kind] }) => kind !== 'jobs' && kind !== 'job' });
    },
  });
  const lost = [counted(counts.queues, group.queues.length), counted(counts.queuesThatTheyManage, group.manages.length), counted(counts.storages, group.storages.length)];
  return (
    <FormDialog title={fill(texts.deleteNamed, { name: group.name })} word={texts.deleteGroup} grave pending={remove.isPending} error={remove.error} line={`corral groups rm ${quote(group.name)}`} onSubmit={() => remove.mutate()} onClose={onClose}>
      <p className="text-sm text-muted">
        {fill(texts.loseWhatGrants, { members: counted(counts.members, group.memberCount), lost: lost.join(', ') })}
      </p>
    </FormDialog>
  );
}
