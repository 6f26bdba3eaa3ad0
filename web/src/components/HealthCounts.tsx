/** How many nodes the ledger of health suspects or has closed; each narrows the list to them. */

import type { Health } from '../api/types';
import { counts, stateWords, toneOf } from '../lib/health';
import { nodes as texts } from '../texts/english/nodes';

interface Props {
  health: readonly Health[];
  /** The words that the list is searched for now. */
  q: string;
  onChoose: (q: string) => void;
}

export function HealthCounts({ health, q, onChoose }: Props) {
  const found = counts(health);
  if (found.length === 0) return null;
  return (
    <div role="group" aria-label={texts.health} className="flex flex-wrap gap-1">
      {found.map(([state, number]) => (
        <button
          key={state}
          type="button"
          aria-pressed={q === state}
          onClick={() => onChoose(q === state ? '' : state)}
          className={`inline-flex h-7 items-center gap-1.5 rounded-[4px] border border-transparent px-2 text-xs hover:underline aria-pressed:border-line-strong aria-pressed:bg-raised aria-pressed:font-medium ${toneOf(state)}`}
        >
          {number} {stateWords(state)}
        </button>
      ))}
    </div>
  );
}
