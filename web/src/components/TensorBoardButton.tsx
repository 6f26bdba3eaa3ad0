/** Starts TensorBoard for what jobs write, and goes where it opens once it runs. */

import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { ApiError, call } from '../api/client';
import type { JobDetail, JobSummary } from '../api/types';
import { job as texts } from '../texts/english/job';
import { Fault } from './Notices';

const TRIES = 3;

export function TensorBoardButton({ jobs, className = '' }: { jobs: readonly Pick<JobSummary, 'id'>[]; className?: string }) {
  const navigate = useNavigate();
  const start = useMutation({
    mutationFn: () => call<JobDetail>('/tensorboards', { method: 'POST', json: { jobs: jobs.map((each) => each.id) } }),
    // a second call finds what the first one started, so a lost connection need not be shown
    retry: (failed, error) => error instanceof ApiError && error.status === 0 && failed < TRIES,
    onSuccess: (job) =>
      void navigate({ to: '/jobs/$ref/open/$task/$port', params: { ref: job.id, task: 'main-0', port: 'tensorboard' }, search: { wait: '1' } }),
  });
  return (
    <>
      <button type="button" className={`btn ${className}`} disabled={start.isPending} onClick={() => start.mutate()}>
        {texts.tensorboard}
      </button>
      {start.error && <Fault error={start.error} />}
    </>
  );
}
