/** Stops the chosen jobs one after the other, and says which were refused and why. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call, part } from '../api/client';
import type { JobSummary } from '../api/types';
import { jobLine } from '../lib/cli';
import { count } from '../lib/format';
import { CommandLine } from './Copy';
import { Dialog } from './Dialog';

interface Refusal {
  job: JobSummary;
  message: string;
}

/** Names that are listed; the others are counted. */
const NAMED = 12;

export function StopMany({ jobs, onClose, onDone }: { jobs: readonly JobSummary[]; onClose: () => void; onDone: () => void }) {
  const client = useQueryClient();
  const [asked, setAsked] = useState(0);
  const [refused, setRefused] = useState<Refusal[]>([]);
  const act = useMutation({
    mutationFn: async () => {
      const found: Refusal[] = [];
      for (const job of jobs) {
        await call(`/jobs/${part(job.id)}/stop`, { method: 'POST' }).catch((error: unknown) =>
          found.push({ job, message: error instanceof Error ? error.message : 'It was not stopped.' }),
        );
        setAsked((before) => before + 1);
      }
      return found;
    },
    onSuccess: async (found) => {
      setRefused(found);
      await client.invalidateQueries({ predicate: ({ queryKey: [kind] }) => kind !== 'me' });
      if (found.length === 0) onDone();
    },
  });
  const many = count(jobs.length, 'job');
  return (
    <Dialog title={`Stop ${many}?`} onClose={onClose}>
      <p className="text-sm text-muted">Their tasks get the signal to end, and are killed after their grace period. Their devices become free.</p>
      <ul className="max-h-48 overflow-y-auto py-2 text-sm" aria-label="Jobs to stop">
        {jobs.slice(0, NAMED).map((job) => (
          <li key={job.id}>
            {job.name} <span className="text-muted">{job.user}</span>
          </li>
        ))}
        {jobs.length > NAMED && <li className="text-muted">and {jobs.length - NAMED} more</li>}
      </ul>
      {act.isPending && (
        <p role="status" className="text-sm">
          {asked} of {many} asked to stop
        </p>
      )}
      {refused.length > 0 && (
        <ul role="alert" className="max-h-48 overflow-y-auto border-l-[3px] border-fail bg-fail-ground px-4 py-3 text-sm">
          {refused.map(({ job, message }) => (
            <li key={job.id}>
              {job.name}: {message}
            </li>
          ))}
        </ul>
      )}
      <div className="flex flex-wrap items-center gap-2 pt-5">
        <CommandLine line={jobLine('stop', jobs[0]!.id, ...jobs.slice(1).map(({ id }) => id))} className="-ml-1.5" />
        <span className="grow" />
        <button type="button" className="btn" onClick={refused.length > 0 ? onDone : onClose}>
          {refused.length > 0 ? 'Close' : 'Keep them'}
        </button>
        {!act.isSuccess && (
          <button type="button" data-first className="btn btn-grave" disabled={act.isPending} onClick={() => act.mutate()}>
            Stop {many}
          </button>
        )}
      </div>
    </Dialog>
  );
}
