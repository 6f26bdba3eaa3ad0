/** Puts a waiting job elsewhere in its queue; for the managers of the queue. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call, part } from '../api/client';
import * as ask from '../api/queries';
import { jobLine, refOf } from '../lib/cli';
import { line as texts } from '../texts/english/line';
import { fill } from '../texts/fill';
import { FormDialog } from './FormDialog';

const PLACES = ['first', 'before', 'last', 'own'] as const;
type Place = (typeof PLACES)[number];

interface Props {
  job: { id: string; name: string; user: string; queue: string };
  onMoved?: () => void;
  onClose: () => void;
}

export function OrderDialog({ job, onMoved, onClose }: Props) {
  const client = useQueryClient();
  const [place, setPlace] = useState<Place>('first');
  const [before, setBefore] = useState('');
  const { data: me } = useQuery(ask.me);
  const { data: waiting } = useQuery(ask.waitingIn(job.queue));
  const others = (waiting?.items ?? []).filter((each) => each.id !== job.id);
  const order = useMutation({
    mutationFn: () => call(`/jobs/${part(job.id)}/order`, { method: 'POST', json: { place, before: place === 'before' ? before : '' } }),
    onSuccess: async () => {
      onMoved?.();
      onClose();
      await client.invalidateQueries({ predicate: ({ queryKey: [kind] }) => kind === 'jobs' || kind === 'job' });
    },
  });
  const ref = refOf({ ...job, state: 'waiting' }, me?.user);
  const line = place === 'before' ? jobLine('order', ref, '--before', before || 'JOB') : jobLine('order', ref, `--${place}`);
  return (
    <FormDialog title={fill(texts.moveTitle, { name: job.name })} word={texts.move} pending={order.isPending} ready={place !== 'before' || before !== ''} error={order.error} line={line} onSubmit={() => order.mutate()} onClose={onClose}>
      <fieldset className="space-y-2 text-sm">
        <legend className="pb-2 text-muted">{fill(texts.whereQueue, { queue: job.queue })}</legend>
        {PLACES.map((each, at) => (
          <label key={each} className="flex items-start gap-2">
            <input type="radio" name="place" className="mt-1" checked={place === each} data-first={at === 0} disabled={each === 'before' && others.length === 0} onChange={() => setPlace(each)} />
            <span>
              {texts.places[each]}
              <span className="block text-xs text-muted">{texts.placesMean[each]}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {place === 'before' && (
        <label className="mt-3 block space-y-1">
          <span className="label">{texts.before}</span>
          <select className="field" value={before} onChange={(event) => setBefore(event.target.value)}>
            <option value="">{texts.chooseWaitingJob}</option>
            {others.map((each) => (
              <option key={each.id} value={each.id}>
                {each.name} ({each.user})
              </option>
            ))}
          </select>
        </label>
      )}
    </FormDialog>
  );
}
