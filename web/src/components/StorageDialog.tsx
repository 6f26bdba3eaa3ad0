/** Making a storage, or changing one: the fields of its type; the whole document is edited under Configuration. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { call } from '../api/client';
import { documentPath } from '../api/queries';
import type { Applied, DocumentView } from '../api/types';
import { guard } from '../lib/documents';
import { documentOf, formOf, TYPES, type StorageForm } from '../lib/storageform';
import { FormDialog, TextField, Tick } from './FormDialog';

interface Props {
  /** The one that is changed; null for a new one. */
  of: DocumentView | null;
  onDone: (name: string) => void;
  onClose: () => void;
}

export function StorageDialog({ of, onDone, onClose }: Props) {
  const client = useQueryClient();
  const [form, setForm] = useState<StorageForm>(() => formOf(of?.document ?? {}));
  const set = (change: Partial<StorageForm>) => setForm({ ...form, ...change });
  const name = form.name.trim();
  const save = useMutation({
    mutationFn: () =>
      call<Applied>(documentPath('Storage', name), { method: 'PUT', json: documentOf(form, of?.document ?? {}), headers: guard(of?.revision ?? 0) }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['configuration'] });
      await client.invalidateQueries({ queryKey: ['files', name] });
      onDone(name);
    },
  });
  const type = TYPES.find((each) => each.type === form.type);
  return (
    <FormDialog title={of ? `Edit ${of.name}` : 'New storage'} word={of ? 'Save' : 'Make it'} pending={save.isPending} error={save.error} line="corral apply FILE" onSubmit={() => save.mutate()} onClose={onClose}>
      <div className="space-y-3">
        {!of && <TextField label="Name" first required max={63} value={form.name} onChange={(each) => set({ name: each })} hint="what groups grant and jobs name" />}
        <TextField label="Description" first={of !== null} value={form.description} onChange={(each) => set({ description: each })} />
        <label className="block space-y-1">
          <span className="label">Type</span>
          <select className="field" value={form.type} onChange={(event) => set({ type: event.target.value })}>
            {TYPES.map((each) => (
              <option key={each.type} value={each.type}>
                {each.label}
              </option>
            ))}
          </select>
        </label>
        {type?.fields.map((field) => (
          <TextField key={field.name} label={field.label} hint={field.hint} value={form.texts[field.name] ?? ''} onChange={(each) => set({ texts: { ...form.texts, [field.name]: each } })} />
        ))}
        {!['folder', 'uri', 'pvc'].includes(form.type) && <TextField label="Mount options, with blanks between them" value={form.mountOptions} onChange={(each) => set({ mountOptions: each })} />}
        <Tick checked={!form.share} onChange={(each) => set({ share: !each })}>
          Each user has a folder of their own in it
        </Tick>
        <Tick checked={form.readOnly} onChange={(each) => set({ readOnly: each })}>
          Jobs may only read it
        </Tick>
        <p className="text-xs text-muted">
          No password stands here: a Secret or a file of the machines holds it.{' '}
          {of && (
            <Link to="/configuration" search={{ document: `Storage/${of.name}`, edit: 'yes' }} className="link">
              Edit the whole document
            </Link>
          )}
        </p>
      </div>
    </FormDialog>
  );
}
