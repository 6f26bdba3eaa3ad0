/** The outcome of the search for a goal: the least that reaches it, and the values that were tried. */

import type { GoalOutcome } from '../api/types';
import { duration } from '../lib/time';

export function GoalAnswer({ goal }: { goal: GoalOutcome }) {
  return (
    <section aria-label="Goal" className="space-y-2">
      <div className={`border-l-[3px] px-4 py-2 ${goal.reached ? 'border-accent' : 'border-fail'}`}>
        <p className="text-base font-medium">{goal.says}</p>
        <p className="pt-0.5 font-mono text-xs break-words text-muted">{goal.goal}</p>
      </div>
      <table className="grid-table max-w-lg" aria-label="Steps searched">
        <thead>
          <tr>
            <th className="num">Tried</th>
            <th className="num">Gives</th>
            <th className="num">Wanted</th>
            <th>Reached</th>
          </tr>
        </thead>
        <tbody>
          {goal.tries.map((each) => (
            <tr key={each.value} className={each.value === goal.least ? 'font-medium' : ''}>
              <td className="num">{each.value}</td>
              <td className="num">{each.refused ? <span title={each.refused}>refused</span> : measured(each.measured, goal.unit)}</td>
              <td className="num text-muted">{each.refused ? '–' : measured(each.wanted, goal.unit)}</td>
              <td>{each.held ? 'yes' : <span className="text-muted">no</span>}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="text-xs text-muted">{goal.reached ? 'What follows is the answer for this least.' : 'What follows is the answer for the most that was tried.'}</p>
    </section>
  );
}

/** A measured value; null is never. */
function measured(value: number | null | undefined, unit: string): string {
  if (value === null || value === undefined) return 'never';
  return unit === 'seconds' ? duration(Math.round(value)) : String(Number(value.toPrecision(3)));
}
