/** The last question before documents are applied: what changes, who would yield, and why, for the history. */

import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../api/client';
import { documentPath } from '../api/queries';
import type { Applied, AppliedDocument, Finding } from '../api/types';
import { quote } from '../lib/cli';
import { counted, diffRows } from '../lib/diff';
import { guard, nameOf, outcome } from '../lib/documents';
import { draft as texts } from '../texts/english/configuration';
import { counted as plural, fill, number } from '../texts/fill';
import { Findings } from './Consequences';
import { CommandLine } from './Copy';
import { Dialog } from './Dialog';
import { Fault } from './Notices';

export interface Draft {
  text: string;
  /** What would become of each document of it. */
  documents: AppliedDocument[];
  /** The revision that must be in force, 0 for none at all; null where the file holds several documents. */
  revision: number | null;
  /** Those that must be in force, by KIND/NAME, where the file holds several documents. */
  guards?: Readonly<Record<string, number>>;
}

interface Props {
  draft: Draft;
  /** The guarantees that jobs would have to yield for; with any, this is asked for twice. */
  findings: readonly Finding[];
  /** The button that goes back to the draft. */
  leave?: string;
  onApplied: (documents: AppliedDocument[]) => void;
  onClose: () => void;
}

async function send({ text, documents, revision, guards = {} }: Draft, note: string, preempt: boolean): Promise<Applied> {
  const query = { note: note || undefined, preempt: preempt || undefined };
  const [only] = documents;
  const revisions = Object.entries(guards).map(([name, each]) => `${name}:${each}`);
  if (revision === null || !only) return call<Applied>('/documents', { method: 'POST', text, query: { ...query, revision: revisions } });
  return call<Applied>(documentPath(only.kind, only.name), { method: 'PUT', text, query, headers: guard(revision) });
}

export function ApplyDialog({ draft, findings, leave = texts.goOnWriting, onApplied, onClose }: Props) {
  const preempt = findings.length > 0;
  const [note, setNote] = useState('');
  const [sure, setSure] = useState(false);
  const apply = useMutation({
    mutationFn: () => send(draft, note.trim(), preempt),
    onSuccess: ({ documents }) => onApplied(documents),
  });
  const changes = draft.documents.filter((each) => each.action !== 'unchanged');
  const [only] = changes;
  const line = ['corral apply FILE', note.trim() && `-m ${quote(note.trim())}`, preempt && '--preempt'].filter(Boolean).join(' ');
  return (
    <Dialog title={only && changes.length === 1 ? fill(texts.applyNamed, { document: nameOf(only) }) : plural(texts.applyDocuments, changes.length)} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          apply.mutate();
        }}
      >
        <ul className="space-y-1 text-sm">
          {changes.map((each) => {
            const { came, gone } = counted(diffRows(each.diff));
            return (
              <li key={nameOf(each)}>
                {outcome(each)} <span className="text-accent">+{number(came)}</span> <span className="text-fail">−{number(gone)}</span>
              </li>
            );
          })}
        </ul>
        {preempt && (
          <div className="pt-4">
            <Findings findings={findings} />
            <label className="flex items-start gap-2 pt-3 text-sm">
              <input type="checkbox" className="mt-0.5" checked={sure} onChange={(event) => setSure(event.target.checked)} />
              {texts.tellToYield}
            </label>
          </div>
        )}
        <label className="block space-y-1 pt-4">
          <span className="label">{texts.whyForHistory}</span>
          <input className="field" data-first maxLength={500} value={note} onChange={(event) => setNote(event.target.value)} placeholder={texts.whyExample} />
        </label>
        {apply.error && <Fault error={apply.error} />}
        <div className="flex flex-wrap items-center gap-2 pt-5">
          <CommandLine line={line} className="-ml-1.5" />
          <div className="ml-auto flex gap-2">
            <button type="button" className="btn" onClick={onClose}>
              {leave}
            </button>
            <button type="submit" className={`btn ${preempt ? 'btn-grave' : 'btn-main'}`} disabled={apply.isPending || (preempt && !sure)}>
              {preempt ? texts.applyYield : texts.apply}
            </button>
          </div>
        </div>
      </form>
    </Dialog>
  );
}
