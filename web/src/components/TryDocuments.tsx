/** Try documents before they are applied: what jobs and queues are to expect under them in the next day. */

import { NOTHING } from '../lib/whatif';
import { draft as texts } from '../texts/english/configuration';
import { CommandLine } from './Copy';
import { Fault } from './Notices';
import { QuestionProgress } from './QuestionProgress';
import type { Asking } from './useQuestion';
import { WhatIfAnswer } from './WhatIfAnswer';

interface Props {
  attempt: Asking;
  text: string;
}

export function TryButton({ attempt, text, disabled }: Props & { disabled: boolean }) {
  return (
    <button type="button" className="btn !h-9" disabled={disabled || attempt.isPending} title={texts.tryMeans} onClick={() => attempt.ask({ ...NOTHING, documents: text })}>
      {attempt.isPending ? texts.trying : texts.tryIt}
    </button>
  );
}

export function TryAnswer({ attempt, text }: Props) {
  if (!attempt.question) return null;
  const old = attempt.question.documents !== text;
  return (
    <div className="col-span-full min-w-0 border-t border-line pt-4" aria-live="polite">
      <QuestionProgress asking={attempt} />
      {attempt.error !== undefined && <Fault error={attempt.error} />}
      {attempt.answer && (
        <div className={old ? 'opacity-60' : ''}>
          {old && <p className="pb-2 text-sm text-muted">{texts.earlierText}</p>}
          <WhatIfAnswer answer={attempt.answer} />
          <CommandLine line="corral what-if --documents FILE" className="-ml-1.5 pt-3" />
        </div>
      )}
    </div>
  );
}
