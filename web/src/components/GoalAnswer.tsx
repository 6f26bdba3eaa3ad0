/** The outcome of the search for a goal: the least that reaches it, and the values that were tried. */

import type { GoalOutcome } from '../api/types';
import { duration } from '../lib/time';
import { goal as texts } from '../texts/english/whatif';
import { number } from '../texts/fill';

export function GoalAnswer({ goal }: { goal: GoalOutcome }) {
  return (
    <section aria-label={texts.goal} className="space-y-2">
      <div className={`border-l-[3px] px-4 py-2 ${goal.reached ? 'border-accent' : 'border-fail'}`}>
        <p className="text-base font-medium">{goal.says}</p>
        <p className="pt-0.5 font-mono text-xs break-words text-muted">{goal.goal}</p>
      </div>
      <table className="grid-table max-w-lg" aria-label={texts.stepsSearched}>
        <thead>
          <tr>
            <th className="num">{texts.tried}</th>
            <th className="num">{texts.gives}</th>
            <th className="num">{texts.wanted}</th>
            <th>{texts.reached}</th>
          </tr>
        </thead>
        <tbody>
          {goal.tries.map((each) => (
            <tr key={each.value} className={each.value === goal.least ? 'font-medium' : ''}>
              <td className="num">{number(each.value)}</td>
              <td className="num">{each.refused ? <span title={each.refused}>{texts.refused}</span> : measured(each.measured, goal.unit)}</td>
              <td className="num text-muted">{each.refused ? '–' : measured(each.wanted, goal.unit)}</td>
              <td>{each.held ? texts.yes : <span className="text-muted">{texts.no}</span>}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="text-xs text-muted">{goal.reached ? texts.answerForLeast : texts.answerForMost}</p>
    </section>
  );
}

/** A measured value; null is never. */
function measured(value: number | null | undefined, unit: string): string {
  if (value === null || value === undefined) return texts.never;
  return unit === 'seconds' ? duration(Math.round(value)) : number(Number(value.toPrecision(3)));
}
