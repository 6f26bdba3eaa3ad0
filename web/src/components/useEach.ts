/** Does one thing with chosen jobs, one after the other, and keeps which were refused and why. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { JobSummary } from '../api/types';
import { list as texts } from '../texts/english/list';

export interface Refusal {
  job: JobSummary;
  message: string;
}

export interface Each {
  go: () => void;
  pending: boolean;
  over: boolean;
  /** How many were asked about so far. */
  asked: number;
  refused: readonly Refusal[];
}

/** `onDone` is called when none was refused. */
export function useEach(jobs: readonly JobSummary[], act: (job: JobSummary) => Promise<unknown>, onDone: () => void): Each {
  const client = useQueryClient();
  const [asked, setAsked] = useState(0);
  const [refused, setRefused] = useState<Refusal[]>([]);
  const work = useMutation({
    mutationFn: async () => {
      const found: Refusal[] = [];
      setAsked(0);
      for (const job of jobs) {
        await act(job).catch((error: unknown) => found.push({ job, message: error instanceof Error ? error.message : texts.refused }));
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
  return { go: () => work.mutate(), pending: work.isPending, over: work.isSuccess, asked, refused };
}
