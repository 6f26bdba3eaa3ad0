/** Advice from a profile, the greatest gain first. */

import type { ProfileReport } from '../api/types';
import { percent } from '../lib/profiles';

const OF = { time: 'of the time', memory: 'of the memory that it asked for' } as const;

export function ProfileAdvice({ report }: { report: ProfileReport }) {
  if (report.advice.length === 0) return <p className="text-sm text-muted">Nothing stands out, so there is no advice.</p>;
  return (
    <ol aria-label="Advice" className="list-decimal space-y-2 pl-6 text-sm">
      {report.advice.map((each) => (
        <li key={`${each.subject} ${each.rank}`}>
          {each.text} <span className="text-muted">Gain: up to {percent(each.gain)} {OF[each.of]}.</span>
        </li>
      ))}
    </ol>
  );
}
