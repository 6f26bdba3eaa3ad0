/** Asks for more time for a job with idle devices, which is given once, with a reason. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call, part } from '../api/client';
import { me as askMe } from '../api/queries';
import type { IdleJob } from '../api/types';
import { coming, extendLine, idleWords } from '../lib/idle';
import { idle as texts } from '../texts/english/idle';
import { fill, filled } from '../texts/fill';
import { FormDialog, TextField } from './FormDialog';
import { Until } from './Time';

export function ExtendDialog({ job, onClose }: { job: IdleJob; onClose: () => void }) {
  const client = useQueryClient();
  const { data: me } = useQuery(askMe);
  const [reason, setReason] = useState('');
  const why = reason.trim();
  const extend = useMutation({
    mutationFn: () => call<IdleJob>(`/jobs/${part(job.job)}/idle/extend`, { method: 'POST', json: { reason: why } }),
    onSuccess: async () => {
      onClose();
      await client.invalidateQueries({ queryKey: ['idle'] });
    },
  });
  const { words, at } = coming(job);
  return (
    <FormDialog
      title={fill(texts.moreTimeTitle, { name: job.name })}
      word={texts.ask}
      pending={extend.isPending}
      ready={why !== ''}
      error={extend.error}
      line={extendLine(job, me?.user, why)}
      onSubmit={() => extend.mutate()}
      onClose={onClose}
    >
      <div className="space-y-3">
        <p className="text-sm text-muted">
          {idleWords(job)}{' '}
          {at && (
            <>
              {filled(texts.unlessUsed, { words, time: <Until at={at} /> })}{' '}
            </>
          )}
          {texts.extendNote}
        </p>
        <TextField label={texts.whyNeedsDevices} first required max={500} hint={texts.dataLateComes} value={reason} onChange={setReason} />
      </div>
    </FormDialog>
  );
}
