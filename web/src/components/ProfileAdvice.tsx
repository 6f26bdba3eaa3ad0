/** Advice from a profile, the greatest gain first. */

import type { ProfileReport } from '../api/types';
import { percent } from '../lib/profiles';
import { profiles as texts } from '../texts/english/profiles';
import { fill } from '../texts/fill';

export function ProfileAdvice({ report }: { report: ProfileReport }) {
  if (report.advice.length === 0) return <p className="text-sm text-muted">{texts.nothingStandsOut}</p>;
  return (
    <ol aria-label={texts.advice} className="list-decimal space-y-2 pl-6 text-sm">
      {report.advice.map((each) => (
        <li key={`${each.subject} ${each.rank}`}>
          {each.text} <span className="text-muted">{fill(texts.gains[each.of], { gain: percent(each.gain) })}</span>
        </li>
      ))}
    </ol>
  );
}
