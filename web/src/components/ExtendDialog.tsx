/** Asks for more time for a job with idle devices, which is given once, with a reason. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call, part } from '../api/client';
import { me as askMe } from '../api/queries';
import type { IdleJob } from '../api/types';
import { coming, extendLine, idleWords } from '../lib/idle';
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
      title={`More time for ${job.name}?`}
      word="Ask for it"
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
              The job {words} <Until at={at} /> unless it uses them.{' '}
            </>
          )}
          It is given as much time as devices may be idle before a warning, once. The reason is kept in the audit log.
        </p>
        <TextField label="Why it needs its devices" first required max={500} hint="the data is late, it comes at noon" value={reason} onChange={setReason} />
      </div>
    </FormDialog>
  );
}
