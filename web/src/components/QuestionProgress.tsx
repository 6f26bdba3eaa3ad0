/** How far a question or a comparison is: a bar, what the scheduler does, and a button that cancels it. */

import { progress as texts } from '../texts/english/shadow';
import { fill } from '../texts/fill';
import type { Asking } from './useQuestion';

type Answering = Pick<Asking, 'progress' | 'isPending' | 'cancelled' | 'cancel'>;

export function QuestionProgress({ asking, noun = 'question' }: { asking: Answering; noun?: keyof typeof texts.cancelled }) {
  const { progress, isPending, cancelled, cancel } = asking;
  if (cancelled) {
    return (
      <p role="status" className="text-sm text-muted">
        {texts.cancelled[noun]}
      </p>
    );
  }
  if (!isPending) return null;
  const percent = Math.floor((progress?.fraction ?? 0) * 100);
  return (
    <div role="group" aria-label={texts.progress} aria-live="off" className="max-w-[60ch] space-y-2">
      <div role="progressbar" aria-label={texts.played} aria-valuenow={percent} aria-valuemin={0} aria-valuemax={100} aria-valuetext={fill(texts.percentSpoken, { percent, says: progress?.says ?? '' })}>
        <div className="h-2 border border-line-strong">
          <div className="h-full bg-accent transition-[width] motion-reduce:transition-none" style={{ width: `${percent}%` }} />
        </div>
      </div>
      <div className="flex items-start justify-between gap-4">
        <p className="min-w-0 pt-1 text-sm break-words">
          <span className="tabular-nums">{percent} %</span> <span className="text-muted">{progress?.says ?? texts.asksServer}</span>
        </p>
        <button type="button" className="btn shrink-0" onClick={cancel}>
          {texts.cancel}
        </button>
      </div>
    </div>
  );
}
