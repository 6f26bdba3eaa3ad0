/** Try documents before they are applied: what jobs and queues are to expect under them in the next day. */

import { type UseMutationResult, useMutation } from '@tanstack/react-query';
import { call } from '../api/client';
import type { WhatIfAnswer as Answer } from '../api/types';
import { asked, NOTHING } from '../lib/whatif';
import { CommandLine } from './Copy';
import { Fault } from './Notices';
import { WhatIfAnswer } from './WhatIfAnswer';

type Attempt = UseMutationResult<Answer, Error, string>;

/** A what-if question about the documents of a text. */
export function useTry(): Attempt {
  return useMutation({ mutationFn: (text: string) => call<Answer>('/what-if', { method: 'POST', json: asked({ ...NOTHING, documents: text }) }) });
}

export function TryButton({ attempt, text, disabled }: { attempt: Attempt; text: string; disabled: boolean }) {
  return (
    <button type="button" className="btn !h-9" disabled={disabled || attempt.isPending} title="Plays the next day with and without the change; nothing is applied" onClick={() => attempt.mutate(text)}>
      {attempt.isPending ? 'Trying it' : 'Try it'}
    </button>
  );
}

export function TryAnswer({ attempt, text }: { attempt: Attempt; text: string }) {
  if (!attempt.data && !attempt.error) return null;
  const old = attempt.variables !== text;
  return (
    <div className="col-span-full min-w-0 border-t border-line pt-4" aria-live="polite">
      {attempt.error && <Fault error={attempt.error} />}
      {attempt.data && !attempt.error && (
        <div className={old ? 'opacity-60' : ''}>
          {old && <p className="pb-2 text-sm text-muted">This is the answer for an earlier text; try it again.</p>}
          <WhatIfAnswer answer={attempt.data} />
          <CommandLine line="corral what-if --documents FILE" className="-ml-1.5 pt-3" />
        </div>
      )}
    </div>
  );
}
