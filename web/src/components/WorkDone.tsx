/** What a job's program last said of its work: a bar of what is done, and its numbers. */

import type { JobDetail } from '../api/types';
import { numbersOf } from '../lib/work';
import { Ago } from './Time';

export function WorkDone({ work }: { work: NonNullable<JobDetail['work']> }) {
  const done = work.progress;
  return (
    <span className="flex flex-wrap items-center gap-x-2">
      {done !== null && (
        <>
          <progress aria-label="Work done" className="h-2 w-28 accent-[var(--accent)]" max={1} value={done} />
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
