/** What moved shares would do, before they are applied: the dry run, the next day with and without them, and the question. */

import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { AppliedDocument, Finding } from '../api/types';
import { mayPreempt } from '../lib/documents';
import { queues as texts } from '../texts/english/queues';
import { fill } from '../texts/fill';
import { ApplyDialog, type Draft } from './ApplyDialog';
import { Consequences } from './Consequences';
import { Fault } from './Notices';
import { Problems } from './Problems';
import { TryAnswer, TryButton } from './TryDocuments';
import { useQuestion } from './useQuestion';
import { useTrial } from './useTrial';

interface Props {
  text: string;
  guards: Record<string, number>;
  /** What the buttons are called: that of the page, or of taking back what was applied. */
  words: { apply: string; clear: string };
  onClear: () => void;
  onApplied: (documents: AppliedDocument[]) => void;
}

export function ShareEffect({ text, guards, words, onClear, onApplied }: Props) {
  const client = useQueryClient();
  const [asking, setAsking] = useState<{ draft: Draft; findings: readonly Finding[] } | null>(null);
  const { trial, current, error, again } = useTrial(text);
  const attempt = useQuestion();
  const does = trial?.documents.some((each) => each.action !== 'unchanged') ?? false;
  const ready = trial !== undefined && current && does && trial.problems.length === 0 && trial.refusal === null;
  const yields = mayPreempt(trial?.findings ?? []);
  const broken = (trial?.findings.length ?? 0) > 0;
  const done = async (documents: AppliedDocument[]) => {
    setAsking(null);
    onApplied(documents);
    await client.invalidateQueries({ predicate: ({ queryKey: [kind] }) => kind === 'cluster' || kind === 'configuration' });
  };
  return (
    <div className="min-w-0 space-y-3">
      {trial && trial.problems.length > 0 && <Problems problems={trial.problems.map((each) => ({ ...each, line: 0 }))} />}
      {error && !trial ? <Fault error={error} retry={again} /> : <Consequences trial={trial} current={current} again={again} />}
      <TryAnswer attempt={attempt} text={text} />
      <div className="sticky bottom-0 flex flex-wrap items-center gap-2 border-t border-line bg-ground py-3">
        <button
          type="button"
          className={broken && yields ? 'btn btn-grave !h-9' : 'btn btn-main !h-9 !px-5'}
          disabled={!ready || (broken && !yields)}
          onClick={() => trial && setAsking({ draft: { text, documents: trial.documents, revision: null, guards }, findings: trial.findings })}
        >
          {broken && yields ? fill(texts.letJobsYield, { apply: words.apply }) : `${words.apply}…`}
        </button>
        <TryButton attempt={attempt} text={text} disabled={!does || (trial?.problems.length ?? 0) > 0} />
        <button type="button" className="btn-bare !h-9" onClick={onClear}>
          {words.clear}
        </button>
      </div>
      {asking && <ApplyDialog {...asking} leave={texts.goOn} onApplied={(documents) => void done(documents)} onClose={() => setAsking(null)} />}
    </div>
  );
}
