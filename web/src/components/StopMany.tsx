/** Stops the chosen jobs one after the other, and says which were refused and why. */

import { call, part } from '../api/client';
import type { JobSummary } from '../api/types';
import { jobLine } from '../lib/cli';
import { count } from '../lib/format';
import { CommandLine } from './Copy';
import { Dialog } from './Dialog';
import { Names, Refusals } from './ManyJobs';
import { useEach } from './useEach';

export function StopMany({ jobs, onClose, onDone }: { jobs: readonly JobSummary[]; onClose: () => void; onDone: () => void }) {
  const each = useEach(jobs, (job) => call(`/jobs/${part(job.id)}/stop`, { method: 'POST' }), onDone);
  const many = count(jobs.length, 'job');
  return (
    <Dialog title={`Stop ${many}?`} onClose={onClose}>
      <p className="text-sm text-muted">Their tasks get the signal to end, and are killed after their grace period. Their devices become free.</p>
      <Names jobs={jobs} label="Jobs to stop" />
      {each.pending && (
        <p role="status" className="text-sm">
          {each.asked} of {many} asked to stop
        </p>
      )}
      <Refusals refused={each.refused} />
      <div className="flex flex-wrap items-center gap-2 pt-5">
        <CommandLine line={jobLine('stop', jobs[0]!.id, ...jobs.slice(1).map(({ id }) => id))} className="-ml-1.5" />
        <span className="grow" />
        <button type="button" className="btn" onClick={each.refused.length > 0 ? onDone : onClose}>
          {each.refused.length > 0 ? 'Close' : 'Keep them'}
        </button>
        {!each.over && (
          <button type="button" data-first className="btn btn-grave" disabled={each.pending} onClick={each.go}>
            Stop {many}
          </button>
        )}
      </div>
    </Dialog>
  );
}
