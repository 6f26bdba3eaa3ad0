/** How far a question or a comparison is: a bar, what the scheduler does, and a button that cancels it. */

import type { Asking } from './useQuestion';

type Answering = Pick<Asking, 'progress' | 'isPending' | 'cancelled' | 'cancel'>;

export function QuestionProgress({ asking, noun = 'question' }: { asking: Answering; noun?: string }) {
  const { progress, isPending, cancelled, cancel } = asking;
  if (cancelled) {
    return (
      <p role="status" className="text-sm text-muted">
        The {noun} was cancelled.
      </p>
    );
  }
  if (!isPending) return null;
  const percent = Math.floor((progress?.fraction ?? 0) * 100);
  return (
    <div role="group" aria-label="Progress" aria-live="off" className="max-w-[60ch] space-y-2">
      <div role="progressbar" aria-label="Played" aria-valuenow={percent} aria-valuemin={0} aria-valuemax={100} aria-valuetext={`${percent} %, ${progress?.says ?? ''}`}>
        <div className="h-2 border border-line-strong">
          <div className="h-full bg-accent transition-[width] motion-reduce:transition-none" style={{ width: `${percent}%` }} />
        </div>
      </div>
      <div className="flex items-start justify-between gap-4">
        <p className="min-w-0 pt-1 text-sm break-words">
          <span className="tabular-nums">{percent} %</span> <span className="text-muted">{progress?.says ?? 'Asks the server.'}</span>
        </p>
        <button type="button" className="btn shrink-0" onClick={cancel}>
          Cancel
        </button>
      </div>
    </div>
  );
}
