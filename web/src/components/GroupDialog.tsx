/** Making a group, changing what is said of it, and the question before it is deleted. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call, part } from '../api/client';
import type { GroupView } from '../api/types';
import { quote } from '../lib/cli';
import { count } from '../lib/format';
import { ADMIN_GROUP } from '../lib/people';
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
      title={of ? `Edit ${of.name}` : 'New group'}
      word={of ? 'Save' : 'Make it'}
      pending={make.isPending || change.isPending}
      error={make.error ?? change.error}
      line={line}
      onSubmit={submit}
      onClose={onClose}
    >
      <div className="space-y-3">
        {!of && <TextField label="Name" first required max={126} value={name} onChange={setName} hint="vision" />}
        <TextField label="Description" first={of !== null} value={description} onChange={setDescription} />
        {of && <TextField label="What the sign-in provider calls it" value={externalName} onChange={setExternalName} />}
        <TextField label="Highest priority of its members' jobs; empty bounds nothing" type="number" value={priority} onChange={setPriority} hint="as the queue says" />
        {of && of.name !== ADMIN_GROUP && (
          <Tick checked={admin} onChange={setAdmin}>
            Its members are administrators
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
  const lost = [count(group.queues.length, 'queue'), count(group.manages.length, 'queue that they manage', 'queues that they manage'), count(group.storages.length, 'storage')];
  return (
    <FormDialog title={`Delete ${group.name}?`} word="Delete" grave pending={remove.isPending} error={remove.error} line={`corral groups rm ${quote(group.name)}`} onSubmit={() => remove.mutate()} onClose={onClose}>
      <p className="text-sm text-muted">
        {`Its ${count(group.memberCount, 'member')} lose what it grants: ${lost.join(', ')}. Their accounts and jobs stay.`}
      </p>
    </FormDialog>
  );
}
