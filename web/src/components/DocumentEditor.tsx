/** A draft of documents beside what applying it would change and break, as the server says while it is written. */

import { useQueryClient } from '@tanstack/react-query';
import { Link, useBlocker, useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import * as ask from '../api/queries';
import type { AppliedDocument, DocumentSummary, Finding } from '../api/types';
import { mayPreempt, nameOf } from '../lib/documents';
import { draft as texts } from '../texts/english/configuration';
import { fill } from '../texts/fill';
import { ApplyDialog, type Draft } from './ApplyDialog';
import { CommandLine } from './Copy';
import { Consequences } from './Consequences';
import { LeaveDraft } from './LeaveDraft';
import { Fault } from './Notices';
import { Problems } from './Problems';
import { TryAnswer, TryButton } from './TryDocuments';
import { useQuestion } from './useQuestion';
import { useTrial } from './useTrial';
import { YamlEditor, type EditorHandle } from './YamlEditor';

interface Props {
  /** KIND/NAME of the document that is edited; '' for a new one. */
  of: string;
  /** What the draft begins with. */
  start: string;
  /** The revision that it is a copy of. */
  base: DocumentSummary | null;
  /** The revision that is in force by now. */
  latest: DocumentSummary | null;
}

/** What is asked about is what was seen when it was asked, whatever becomes known while the question stands. */
interface Asked {
  draft: Draft;
  findings: readonly Finding[];
}

export function DocumentEditor({ of, start, base: begun, latest }: Props) {
  const navigate = useNavigate();
  const client = useQueryClient();
  const editor = useRef<EditorHandle>(null);
  const applied = useRef(false);
  const [text, setText] = useState(start);
  const [saved, setSaved] = useState(start);
  const [base, setBase] = useState(begun);
  const [asking, setAsking] = useState<Asked | null>(null);
  const { trial, current, error, again } = useTrial(text);
  const attempt = useQuestion();
  const changed = text !== saved;
  const leave = useBlocker({ shouldBlockFn: () => changed && !applied.current, enableBeforeUnload: () => changed && !applied.current, withResolver: true });
  const does = trial?.documents.some((each) => each.action !== 'unchanged') ?? false;
  const ready = trial !== undefined && current && does && trial.problems.length === 0 && trial.refusal === null;
  const broken = (trial?.findings.length ?? 0) > 0;
  const yields = mayPreempt(trial?.findings ?? []);
  const submit = () => ready && (!broken || yields) && setAsking({ draft: draftOf(trial.documents, text, base, of), findings: trial.findings });
  const done = async (documents: AppliedDocument[]) => {
    applied.current = true;
    await client.invalidateQueries({ queryKey: ['configuration'] });
    const first = documents.find((each) => nameOf(each) === of) ?? documents[0];
    await navigate({ to: '/configuration', search: first ? { document: nameOf(first) } : {} });
  };
  const takeLatest = async () => {
    if (!latest) return;
    const found = await client.fetchQuery(ask.document(latest.kind, latest.name, latest.revision));
    setText(found.text);
    setSaved(found.text);
    setBase(latest);
  };
  return (
    <>
      {base && latest && latest.revision !== base.revision && <Overtaken latest={latest} onKeep={() => setBase(latest)} onTake={() => void takeLatest()} />}
      <div className="grid grid-cols-[minmax(0,1fr)] gap-x-8 gap-y-6 pt-4 lg:grid-cols-2">
        <div className="flex min-w-0 flex-col gap-2">
          <YamlEditor ref={editor} label={texts.label} value={text} onChange={setText} problems={trial?.problems ?? []} onSubmit={submit} className="max-h-[70vh] overflow-auto" />
          {trial && trial.problems.length > 0 && <Problems problems={trial.problems} onPick={(problem) => editor.current?.show(problem)} />}
        </div>
        <div className="min-w-0">
          {error && !trial ? <Fault error={error} retry={again} /> : <Consequences trial={trial} current={current} again={again} />}
        </div>
        <TryAnswer attempt={attempt} text={text} />
        <div className="sticky bottom-0 col-span-full flex flex-wrap items-center gap-2 border-t border-line bg-ground py-3">
          {broken && yields ? (
            <button type="button" className="btn btn-grave !h-9" disabled={!ready} onClick={submit}>
              {texts.applyYieldAsk}
            </button>
          ) : (
            <button type="button" className="btn btn-main !h-9 !px-5" disabled={!ready || broken} onClick={submit}>
              {texts.applyAsk}
            </button>
          )}
          <TryButton attempt={attempt} text={text} disabled={!does || (trial?.problems.length ?? 0) > 0} />
          <Link to="/configuration" search={of ? { document: of } : {}} className="btn !h-9">
            {changed ? texts.discard : texts.back}
          </Link>
          {changed && (
            <button type="button" className="btn-bare !h-9" onClick={() => setText(saved)}>
              {texts.undoAll}
            </button>
          )}
          <span className="grow" />
          <CommandLine line={`corral apply FILE --dry-run${broken && yields ? ' --preempt' : ''}`} className="max-sm:-ml-1.5" />
        </div>
      </div>
      {asking && <ApplyDialog {...asking} onApplied={(documents) => void done(documents)} onClose={() => setAsking(null)} />}
      {leave.status === 'blocked' && <LeaveDraft title={texts.discardWritten} stay={texts.goOnWriting} onStay={leave.reset} onLeave={leave.proceed} />}
    </>
  );
}

/** One document goes to its own address, guarded by the revision that was edited; a file of several goes as it is. */
function draftOf(documents: AppliedDocument[], text: string, base: DocumentSummary | null, of: string): Draft {
  const [only] = documents;
  if (!only || documents.length !== 1) return { text, documents, revision: null };
  const begun = base?.deleted ? 0 : (base?.revision ?? 0);
  return { text, documents, revision: nameOf(only) === of ? begun : only.revision };
}

function Overtaken({ latest, onKeep, onTake }: { latest: DocumentSummary; onKeep: () => void; onTake: () => void }) {
  return (
    <div role="status" className="mt-3 flex flex-wrap items-center gap-x-3 gap-y-2 border-l-[3px] border-wait bg-wait-ground px-4 py-2 text-sm">
      <p className="grow">
        {fill(latest.deleted ? texts.overtakenDeleted : texts.overtaken, { actor: latest.actor, revision: latest.revision })}
      </p>
      <button type="button" className="btn" onClick={onKeep}>
        {texts.keepMyText}
      </button>
      {!latest.deleted && (
        <button type="button" className="btn" onClick={onTake}>
          {fill(texts.takeRevision, { revision: latest.revision })}
        </button>
      )}
    </div>
  );
}
