/** What is wrong with a file, by line and column; a click goes there. */

import type { Problem } from '../api/types';
import { shared } from '../texts/english/shared';
import { fill } from '../texts/fill';

interface Props {
  problems: readonly Problem[];
  onPick?: (problem: Problem) => void;
}

export function Problems({ problems, onPick }: Props) {
  return (
    <ul role="status" className="space-y-1 text-xs" aria-label={shared.problems}>
      {problems.map((problem) => (
        <li key={`${problem.line} ${problem.path} ${problem.message}`} className="text-fail">
          {problem.line > 0 &&
            (onPick ? (
              <button type="button" className="link font-mono !text-fail" onClick={() => onPick(problem)} aria-label={fill(shared.problemAt, { line: problem.line, column: problem.column })}>
                {problem.line}:{problem.column}
              </button>
            ) : (
              <span className="font-mono">{`${problem.line}:${problem.column}`}</span>
            ))}
          {problem.path && <span className="font-mono"> {problem.path}:</span>} {problem.message}
        </li>
      ))}
    </ul>
  );
}
