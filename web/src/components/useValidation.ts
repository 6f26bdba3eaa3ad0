/** Asks the server what it thinks of a job file while it is written, and whether the form can show all of it. */

import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { call } from '../api/client';
import type { Problem, Validation } from '../api/types';
import { fromDocument, same, toYaml, type JobForm } from '../lib/jobform';
import { useSettled } from './useSettled';

const NONE: Problem[] = [];

export interface Checked {
  /** The text that was checked. */
  text: string;
  valid: boolean;
  problems: Problem[];
  /** What of the file is left out. */
  notes: string[];
  /** The text as a form; null where it says more than a form can. */
  form: JobForm | null;
}

async function check(text: string, signal: AbortSignal): Promise<Checked> {
  const found = await call<Validation>('/validate', { method: 'POST', text, signal });
  const form = found.document && fromDocument(found.document);
  const rewritten = form && (await call<Validation>('/validate', { method: 'POST', text: toYaml(form), signal }));
  const whole = form && same(rewritten?.document, found.document);
  const { valid, problems, notes } = found;
  return { text, valid, problems, notes, form: whole && notes.length === 0 ? form : null };
}

export function useValidation(text: string): { checked: Checked | undefined; problems: Problem[]; error: unknown } {
  const settled = useSettled(text);
  const { data, error } = useQuery({
    queryKey: ['validate', settled],
    queryFn: ({ signal }) => check(settled, signal),
    placeholderData: keepPreviousData,
    gcTime: 10_000,
  });
  return { checked: data, problems: data?.problems ?? NONE, error };
}
