/** Saves the job file of the form as a template: for oneself, for groups, or for everybody. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import * as ask from '../api/queries';
import { share } from '../api/templates';
import { pictureUri } from '../lib/pictures';
import { submit as texts } from '../texts/english/submit';
import { fill } from '../texts/fill';
import { FormDialog, TextField } from './FormDialog';

interface Props {
  file: string;
  name: string;
  onClose: () => void;
}

export function ShareTemplate({ file, name: first, onClose }: Props) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const { data: me } = useQuery(ask.me);
  const [name, setName] = useState(first);
  const [description, setDescription] = useState('');
  const [introduction, setIntroduction] = useState('');
  const [picture, setPicture] = useState<File | null>(null);
  const [whom, setWhom] = useState('');
  const save = useMutation({
    mutationFn: async () => {
      const pictures = picture && { [picture.name]: await pictureUri(picture) };
      const groupList = whom && whom !== '*' ? [whom] : [];
      return share({ type: 'job', name: name.trim(), description, introduction, file, isPublic: whom === '*', groupList, ...(pictures && { pictures }) });
    },
    onSuccess: async (made) => {
      await client.invalidateQueries({ queryKey: ['templates'] });
      await navigate({ to: '/templates/$kind/$name', params: { kind: made.type, name: made.name } });
    },
  });
  return (
    <FormDialog title={texts.saveTemplate} word={texts.save} pending={save.isPending} ready={!!name.trim()} error={save.error} onSubmit={() => save.mutate()} onClose={onClose}>
      <div className="space-y-3">
        <TextField label={texts.name} first required max={255} value={name} onChange={setName} />
        <TextField label={texts.inOneSentence} value={description} onChange={setDescription} hint={texts.whatGood} />
        <label className="block space-y-1">
          <span className="label">{texts.moreAboutMarkdown}</span>
          <textarea rows={5} className="field !h-auto py-1.5" value={introduction} onChange={(event) => setIntroduction(event.target.value)} />
        </label>
        <label className="block space-y-1">
          <span className="label">{texts.picture}</span>
          <input type="file" className="block w-full text-sm" accept="image/png,image/jpeg,image/gif,image/webp" onChange={(event) => setPicture(event.target.files?.[0] ?? null)} />
        </label>
        <label className="block space-y-1">
          <span className="label">{texts.for}</span>
          <select className="field" value={whom} onChange={(event) => setWhom(event.target.value)}>
            <option value="">{texts.onlyMe}</option>
            {me?.groups.map((group) => (
              <option key={group} value={group}>{fill(texts.theGroup, { group })}</option>
            ))}
            <option value="*">{texts.everybody}</option>
          </select>
        </label>
        <p className="text-xs text-muted">{texts.writeSecretInto}</p>
      </div>
    </FormDialog>
  );
}
