/** Making a storage, or changing one: the fields of its type; the whole document is edited under Configuration. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { call } from '../api/client';
import { documentPath } from '../api/queries';
import type { Applied, DocumentView } from '../api/types';
import { guard } from '../lib/documents';
import { documentOf, fieldHint, fieldLabel, formOf, type StorageForm, typeLabel, TYPES } from '../lib/storageform';
import { storages as texts } from '../texts/english/storages';
import { fill } from '../texts/fill';
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
    <FormDialog title={of ? fill(texts.editNamed, { name: of.name }) : texts.newStorage} word={of ? texts.save : texts.makeIt} pending={save.isPending} error={save.error} line="corral apply FILE" onSubmit={() => save.mutate()} onClose={onClose}>
      <div className="space-y-3">
        {!of && <TextField label={texts.name} first required max={63} value={form.name} onChange={(each) => set({ name: each })} hint={texts.whatGroupsGrant} />}
        <TextField label={texts.description} first={of !== null} value={form.description} onChange={(each) => set({ description: each })} />
        <label className="block space-y-1">
          <span className="label">{texts.type}</span>
          <select className="field" value={form.type} onChange={(event) => set({ type: event.target.value })}>
            {TYPES.map((each) => (
              <option key={each.type} value={each.type}>
                {typeLabel(each.type)}
              </option>
            ))}
          </select>
        </label>
        {type?.fields.map((field) => (
          <TextField key={field.name} label={fieldLabel(field)} hint={fieldHint(field)} value={form.texts[field.name] ?? ''} onChange={(each) => set({ texts: { ...form.texts, [field.name]: each } })} />
        ))}
        {!['folder', 'uri', 'pvc'].includes(form.type) && <TextField label={texts.mountOptionsBlanks} value={form.mountOptions} onChange={(each) => set({ mountOptions: each })} />}
        <Tick checked={!form.share} onChange={(each) => set({ share: !each })}>
          {texts.eachUserHas}
        </Tick>
        <Tick checked={form.readOnly} onChange={(each) => set({ readOnly: each })}>
          {texts.jobsMayRead}
        </Tick>
        <p className="text-xs text-muted">
          {texts.passwordStandsHere}{' '}
          {of && (
            <Link to="/configuration" search={{ document: `Storage/${of.name}`, edit: 'yes' }} className="link">
              {texts.editWholeDocument}
            </Link>
          )}
        </p>
      </div>
    </FormDialog>
  );
}
