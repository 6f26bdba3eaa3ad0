/** Asks before a document is rolled back or deleted, after showing what that changes and what it would break. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ApiError, call } from '../api/client';
import * as ask from '../api/queries';
import type { Applied, DocumentSummary } from '../api/types';
import { quote } from '../lib/cli';
import { mayPreempt, nameOf } from '../lib/documents';
import { Findings } from './Consequences';
import { CommandLine } from './Copy';
import { Dialog } from './Dialog';
import { Diff } from './Diff';
import { Fault, Skeleton } from './Notices';

interface Props {
  /** The revision to go back to, or the one to delete. */
  of: DocumentSummary;
  action: 'rollback' | 'delete';
  onClose: () => void;
  onDone?: () => void;
}

export function ChangeQuestion({ of, action, onClose, onDone }: Props) {
  const client = useQueryClient();
  const [preempt, setPreempt] = useState(false);
  const trial = useQuery(ask.changeTrial(of, action, preempt));
  const change = useMutation({
    mutationFn: () => call<Applied>(...ask.documentChange(of, action, { preempt: preempt || undefined })),
    onSuccess: async () => {
      onClose();
      onDone?.();
      await client.invalidateQueries({ queryKey: ['configuration'] });
    },
  });
  const deletes = action === 'delete';
  const refused = trial.error instanceof ApiError ? trial.error : null;
  const findings = refused?.code === 'guarantee-broken' ? refused.findings : (trial.data?.findings ?? []);
  const document = quote(`${of.kind.toLowerCase()}/${of.name}`);
  const line = `corral ${deletes ? `delete ${document}` : `rollback ${document} ${of.revision}`}${preempt ? ' --preempt' : ''}`;
  return (
    <Dialog title={deletes ? `Delete ${nameOf(of)}?` : `Roll ${nameOf(of)} back to revision ${of.revision}?`} onClose={onClose}>
      {deletes && <p className="pb-3 text-sm text-muted">Its revisions stay, and it can be rolled back to one of them.</p>}
      {trial.isPending && <Skeleton rows={3} />}
      {trial.error && findings.length === 0 && <Fault error={trial.error} />}
      {findings.length > 0 && <Findings findings={findings} />}
      {trial.data && (
        <div className="max-h-[50vh] overflow-y-auto">
          <Diff diff={trial.data.documents[0]?.diff ?? ''} />
        </div>
      )}
      {(preempt || mayPreempt(findings)) && (
        <label className="flex items-center gap-2 pt-3 text-sm">
          <input type="checkbox" checked={preempt} onChange={(event) => setPreempt(event.target.checked)} />
          Let the jobs that are in its way yield
        </label>
      )}
      {change.error && <Fault error={change.error} />}
      <div className="flex flex-wrap items-center gap-2 pt-5">
        <CommandLine line={line} className="-ml-1.5" />
        <div className="ml-auto flex gap-2">
          <button type="button" className="btn" onClick={onClose}>
            Leave it
          </button>
          <button type="button" className={`btn ${deletes || preempt ? 'btn-grave' : 'btn-main'}`} onClick={() => change.mutate()} disabled={change.isPending || !trial.data}>
            {deletes ? 'Delete' : 'Roll back'}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
