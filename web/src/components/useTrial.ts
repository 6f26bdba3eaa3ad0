/** Asks the server what applying a draft would change and break, while it is written; nothing is stored. */

import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { ApiError, call } from '../api/client';
import type { Applied, AppliedDocument, Finding, Problem } from '../api/types';
import { useSettled } from './useSettled';

export interface DraftTrial {
  /** The text that was tried. */
  text: string;
  problems: Problem[];
  /** What would become of each document; none while the text has problems. */
  documents: AppliedDocument[];
  /** The guarantees that applying it would break. */
  findings: Finding[];
  /** Why it cannot be applied, beside problems and findings. */
  refusal: ApiError | null;
}

async function attempt(text: string, signal: AbortSignal): Promise<DraftTrial> {
  const trial: DraftTrial = { text, problems: [], documents: [], findings: [], refusal: null };
  try {
    trial.documents = (await call<Applied>('/documents/diff', { method: 'POST', text, signal })).documents;
    if (trial.documents.some((each) => each.action !== 'unchanged'))
      await call<Applied>('/documents', { method: 'POST', text, query: { dryRun: true }, signal });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status === 0 || error.status === 401) throw error;
    if (error.code === 'guarantee-broken') trial.findings = error.findings;
    else if (error.problems.length > 0) trial.problems = error.problems;
    else trial.refusal = error;
  }
  return trial;
}

/** `trial` is the last one that was answered, perhaps of an earlier text. A change of any document has it asked again. */
export function useTrial(text: string): { trial: DraftTrial | undefined; current: boolean; error: unknown; again: () => void } {
  const settled = useSettled(text);
  const { data, error, isPlaceholderData, refetch } = useQuery({
    queryKey: ['configuration', 'trial', settled],
    queryFn: ({ signal }) => attempt(settled, signal),
    placeholderData: keepPreviousData,
    staleTime: 0,
    gcTime: 10_000,
  });
  return { trial: data, current: data?.text === text && !isPlaceholderData, error, again: () => void refetch() };
}
