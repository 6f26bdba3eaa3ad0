/** What a dry run found. */

import type { Trial } from '../api/types';
import { submit as texts } from '../texts/english/submit';
import { Glyph } from './Status';
import { Facts } from './Waiting';

export function TrialNote({ trial }: { trial: Trial }) {
  const starts = trial.wouldStart;
  const word = starts ? texts.wouldStartNow : starts === false ? texts.itWouldWait : texts.wouldAcceptedWhether;
  return (
    <div role="status" className={`mb-4 border-l-[3px] px-4 py-2 text-sm ${starts === false ? 'border-wait bg-wait-ground' : 'border-accent bg-accent-ground'}`}>
      <p className="flex items-center gap-2 font-medium">
        <Glyph state={starts === false ? 'waiting' : starts ? 'running' : 'starting'} />
        {word}
      </p>
      {trial.reasons && (
        <>
          <p className="pt-1">{trial.reasons.binding.message}</p>
          <Facts reasons={trial.reasons} />
        </>
      )}
      {trial.notes.map((note) => (
        <p key={note} className="pt-1 text-muted">
          {note}
        </p>
      ))}
    </div>
  );
}
