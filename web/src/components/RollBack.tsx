/** Makes an earlier revision the current one again, after showing what that changes and what it would break. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ApiError, call } from '../api/client';
import * as ask from '../api/queries';
import type { Applied, DocumentSummary } from '../api/types';
import { quote } from '../lib/cli';
import { CommandLine } from './Copy';
import { Dialog } from './Dialog';
import { Diff } from './Diff';
import { Fault, Skeleton } from './Notices';

export function RollBack({ to, onClose }: { to: DocumentSummary; onClose: () => void }) {
  const client = useQueryClient();
  const [preempt, setPreempt] = useState(false);
  const trial = useQuery(ask.rollbackTrial(to.kind, to.name, to.revision, preempt));
  const roll = useMutation({
    mutationFn: () =>
      call<Applied>(`${ask.documentPath(to.kind, to.name)}/rollback`, {
        method: 'POST',
        json: { revision: to.revision },
        query: { preempt: preempt || undefined },
      }),
    onSuccess: async () => {
      onClose();
      await client.invalidateQueries({ queryKey: ['configuration'] });
    },
  });
  const broken = trial.error instanceof ApiError && trial.error.code === 'guarantee-broken';
  const line = `corral rollback ${quote(`${to.kind.toLowerCase()}/${to.name}`)} ${to.revision}${preempt ? ' --preempt' : ''}`;
  return (
    <Dialog title={`Roll ${to.kind}/${to.name} back to revision ${to.revision}?`} onClose={onClose}>
      {trial.isPending && <Skeleton rows={3} />}
      {trial.error && <Fault error={trial.error} />}
      {trial.data && <Diff diff={trial.data.documents[0]?.diff ?? ''} />}
      {(broken || preempt) && (
        <label className="flex items-center gap-2 pt-3 text-sm">
          <input type="checkbox" checked={preempt} onChange={(event) => setPreempt(event.target.checked)} />
          Let the jobs that are in its way yield
        </label>
      )}
      {roll.error && <Fault error={roll.error} />}
      <div className="flex flex-wrap items-center gap-2 pt-5">
        <CommandLine line={line} className="-ml-1.5" />
        <div className="ml-auto flex gap-2">
          <button type="button" className="btn" onClick={onClose}>
            Leave it
          </button>
          <button type="button" autoFocus className="btn btn-main" onClick={() => roll.mutate()} disabled={roll.isPending || !trial.data}>
            Roll back
          </button>
        </div>
      </div>
    </Dialog>
  );
}
