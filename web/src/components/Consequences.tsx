/** What applying a draft would do, document by document, and what stands against it. */

import type { Finding } from '../api/types';
import { mayPreempt, nameOf, outcome, sentence } from '../lib/documents';
import { draft as texts } from '../texts/english/configuration';
import { fill } from '../texts/fill';
import { Diff } from './Diff';
import { Fault, Skeleton } from './Notices';
import type { DraftTrial } from './useTrial';

interface Props {
  trial: DraftTrial | undefined;
  /** Whether the trial is of the text that is written now. */
  current: boolean;
  again: () => void;
}

export function Consequences({ trial, current, again }: Props) {
  if (!trial) return <Skeleton rows={6} />;
  const idle = trial.documents.length > 0 && trial.documents.every((each) => each.action === 'unchanged');
  return (
    <section aria-label={texts.effect} aria-busy={!current} className={current ? '' : 'opacity-60'}>
      <p role="status" className="pb-2 text-sm">
        <Verdict trial={trial} idle={idle} />
      </p>
      {trial.refusal && <Fault error={trial.refusal} retry={again} />}
      {trial.findings.length > 0 && <Findings findings={trial.findings} />}
      {!idle &&
        trial.documents.map((each) => (
          <div key={nameOf(each)} className="pt-3">
            <h2 className="pb-1 text-sm font-semibold">{outcome(each)}</h2>
            {each.diff && <Diff diff={each.diff} label={fill(texts.differenceIn, { document: nameOf(each) })} />}
          </div>
        ))}
    </section>
  );
}

function Verdict({ trial, idle }: { trial: DraftTrial; idle: boolean }) {
  if (trial.problems.length > 0) return <span className="text-fail">{texts.notReadable}</span>;
  if (trial.refusal) return <span className="text-fail">{texts.refused}</span>;
  if (trial.findings.length > 0)
    return mayPreempt(trial.findings) ? (
      <span className="text-wait">{texts.applicableIfYield}</span>
    ) : (
      <span className="text-fail">{texts.wouldBreak}</span>
    );
  if (idle) return <span className="text-muted">{texts.isInForce}</span>;
  return <span className="text-accent">{texts.applicable}</span>;
}

/** The guarantees that a change would break, with their numbers. */
export function Findings({ findings }: { findings: readonly Finding[] }) {
  return (
    <ul aria-label={texts.findings} className="space-y-2 border-l-[3px] border-wait bg-wait-ground px-4 py-2.5 text-sm">
      {findings.map((each) => (
        <li key={each.message} className="break-words">
          {sentence(each.message)}
        </li>
      ))}
    </ul>
  );
}
