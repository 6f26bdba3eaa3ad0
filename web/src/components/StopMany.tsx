/** Stops the chosen jobs one after the other, and says which were refused and why. */

import { call, part } from '../api/client';
import type { JobSummary } from '../api/types';
import { jobLine } from '../lib/cli';
import { counts } from '../texts/english/counts';
import { list as texts } from '../texts/english/list';
import { counted, fill } from '../texts/fill';
import { CommandLine } from './Copy';
import { Dialog } from './Dialog';
import { Names, Refusals } from './ManyJobs';
import { useEach } from './useEach';

export function StopMany({ jobs, onClose, onDone }: { jobs: readonly JobSummary[]; onClose: () => void; onDone: () => void }) {
  const each = useEach(jobs, (job) => call(`/jobs/${part(job.id)}/stop`, { method: 'POST' }), onDone);
  const many = counted(counts.jobs, jobs.length);
  return (
    <Dialog title={fill(texts.stopTitle, { many })} onClose={onClose}>
      <p className="text-sm text-muted">{texts.stopNote}</p>
      <Names jobs={jobs} label={texts.jobsStop} />
      {each.pending && (
        <p role="status" className="text-sm">
          {fill(texts.askedStop, { asked: each.asked, many })}
        </p>
      )}
      <Refusals refused={each.refused} />
      <div className="flex flex-wrap items-center gap-2 pt-5">
        <CommandLine line={jobLine('stop', jobs[0]!.id, ...jobs.slice(1).map(({ id }) => id))} className="-ml-1.5" />
        <span className="grow" />
        <button type="button" className="btn" onClick={each.refused.length > 0 ? onDone : onClose}>
          {each.refused.length > 0 ? texts.close : texts.keep}
        </button>
        {!each.over && (
          <button type="button" data-first className="btn btn-grave" disabled={each.pending} onClick={each.go}>
            {fill(texts.stopMany, { many })}
          </button>
        )}
      </div>
    </Dialog>
  );
}
