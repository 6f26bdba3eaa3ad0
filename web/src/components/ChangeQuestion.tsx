/** Asks before a document is rolled back or deleted, after showing what that changes and what it would break. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ApiError, call } from '../api/client';
import * as ask from '../api/queries';
import type { Applied, DocumentSummary } from '../api/types';
import { quote } from '../lib/cli';
import { mayPreempt, nameOf } from '../lib/documents';
import { configuration, draft as texts } from '../texts/english/configuration';
import { shared } from '../texts/english/shared';
import { fill } from '../texts/fill';
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
    <Dialog title={fill(deletes ? texts.deleteNamed : texts.rollBackNamed, { document: nameOf(of), revision: of.revision })} onClose={onClose}>
      {deletes && <p className="pb-3 text-sm text-muted">{texts.revisionsStay}</p>}
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
          {texts.letYield}
        </label>
      )}
      {change.error && <Fault error={change.error} />}
      <div className="flex flex-wrap items-center gap-2 pt-5">
        <CommandLine line={line} className="-ml-1.5" />
        <div className="ml-auto flex gap-2">
          <button type="button" className="btn" onClick={onClose}>
            {shared.leave}
          </button>
          <button type="button" className={`btn ${deletes || preempt ? 'btn-grave' : 'btn-main'}`} onClick={() => change.mutate()} disabled={change.isPending || !trial.data}>
            {deletes ? configuration.delete : configuration.rollBack}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
