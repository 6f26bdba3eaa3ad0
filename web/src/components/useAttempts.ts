/** The attempts of one task, the newest first. */

import { useQuery } from '@tanstack/react-query';
import { call, part } from '../api/client';
import type { Attempt, Page } from '../api/types';

const LISTED = 50;

/** Asks for the attempts of `worker-0`; "" asks for nothing. */
export function useAttempts(job: string, task: string) {
  const cut = task.lastIndexOf('-');
  const [role, index] = [task.slice(0, cut), task.slice(cut + 1)];
  return useQuery({
    queryKey: ['job', job, 'attempts', role, index],
    queryFn: ({ signal }) =>
      call<Page<Attempt>>(`/jobs/${part(job)}/tasks/${part(role)}/${part(index)}/attempts`, { signal, query: { limit: LISTED } }),
    enabled: task !== '',
  });
}

/** The number that the command line and the API take for an attempt: the job's attempt, and in it the task's. */
export function numberOf(attempt: Pick<Attempt, 'jobAttempt' | 'attempt'>): string {
  return `${attempt.jobAttempt}.${attempt.attempt}`;
}
