/** What a job's program last said of its work: a bar of what is done, and its numbers. */

import type { JobDetail } from '../api/types';
import { numbersOf } from '../lib/work';
import { job as texts } from '../texts/english/job';
import { Ago } from './Time';

export function WorkDone({ work }: { work: NonNullable<JobDetail['work']> }) {
  const done = work.progress;
  return (
    <span className="flex flex-wrap items-center gap-x-2">
      {done !== null && (
        <>
          <span role="progressbar" aria-label={texts.workDone} aria-valuenow={Math.floor(done * 100)} aria-valuemin={0} aria-valuemax={100}>
            <svg width={112} height={10} aria-hidden className="block">
              <rect x={0.5} y={0.5} width={111} height={9} fill="none" stroke="var(--line-strong)" />
              <rect width={112 * done} height={10} fill="var(--accent)" />
            </svg>
          </span>
          <span>{Math.floor(done * 100)} %</span>
        </>
      )}
      <span className="text-sm font-normal text-muted">
        {[...numbersOf(work), ''].join(' · ')}
        <Ago at={work.at} />
      </span>
    </span>
  );
}
