/** Asks the server what it thinks of a job file while it is written, and whether the form can show all of it. */

import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { call } from '../api/client';
import type { Problem, Validation } from '../api/types';
import { queryOf, type Given } from '../api/copy';
import type { JobForm } from '../lib/jobform';
import { formOf } from '../lib/jobtext';
import { useSettled } from './useSettled';

const NONE: Problem[] = [];

export interface Checked {
  /** The text that was checked. */
  text: string;
  valid: boolean;
  problems: Problem[];
  /** What of the file is left out. */
  notes: string[];
  /** A role of the text as a form; null where a form cannot change it, or where it holds more than its job. */
  form: (role: string) => JobForm | null;
}

async function check(text: string, given: Given, signal: AbortSignal): Promise<Checked> {
  const { from, set } = queryOf(given, text);
  const found = await call<Validation>('/validate', { method: 'POST', text, query: { from, set }, signal });
  const { valid, problems, notes, document } = found;
  return { text, valid, problems, notes, form: (role) => (document && notes.length === 0 ? formOf(text, document, role) : null) };
}

export function useValidation(text: string, given: Given = {}): { checked: Checked | undefined; problems: Problem[]; error: unknown } {
  const settled = useSettled(text);
  const { data, error } = useQuery({
    queryKey: ['validate', settled, given],
    queryFn: ({ signal }) => check(settled, given, signal),
    placeholderData: keepPreviousData,
    gcTime: 10_000,
  });
  // One and the same list while there is none, so that the editor is left alone while somebody types.
  return { checked: data, problems: data?.problems.length ? data.problems : NONE, error };
}
