/** A stored job as a file to begin another with. */

import { stringify } from 'yaml';
import { fromDocument, same, toYaml } from '../lib/jobform';
import { codeOf } from '../lib/jobtext';
import { ApiError, call, part } from './client';
import type { JobDocument, JobFile, Validation } from './types';

export interface Copy {
  text: string;
  /** What goes with the text when it is submitted. */
  given: Given;
}

export interface Given {
  /** The job that it came from; it has the secrets of its placeholders. */
  from?: string;
  parameters?: Record<string, string>;
  /** The digest of the code that was uploaded with it, for as long as the text says the same of its code (`codeSaid`). */
  code?: string;
  codeSaid?: string;
  /** The name of the folder that was uploaded on this page. */
  folder?: string;
}

/** The file that a job was submitted as; null where none is kept, or none for who asks. */
export async function fileOf(ref: string, signal?: AbortSignal): Promise<JobFile | null> {
  try {
    return await call<JobFile>(`/jobs/${part(ref)}/file`, { signal });
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 403)) return null;
    throw error;
  }
}

/** The file's text for people: a program's JSON of one line as YAML. */
export function shownText(text: string): string {
  if (!text.startsWith('{') || text.trimEnd().includes('\n')) return text;
  try {
    return stringify(JSON.parse(text), { lineWidth: 0 });
  } catch {
    return text;
  }
}

/** What a stored job begins another with: its own file, or else one that says the same. */
export async function copyOf(ref: string): Promise<Copy> {
  const file = await fileOf(ref);
  if (!file) return { text: await rewritten(ref), given: { from: ref } };
  const text = shownText(file.text);
  return { text, given: { from: file.job, parameters: file.parameters, code: file.code, codeSaid: codeOf(text) } };
}

/** What is sent beside a text that began as a copy. */
export function queryOf(given: Given, text: string): Record<string, string | readonly string[] | undefined> {
  return {
    from: given.from,
    set: Object.entries(given.parameters ?? {}).map(([name, value]) => `${name}=${value}`),
    code: given.code && given.codeSaid === codeOf(text) ? given.code : undefined,
  };
}

/** The file of a stored job: as the form writes it where that says all of it, else as the server shortens it. */
async function rewritten(ref: string): Promise<string> {
  const document = await call<JobDocument>(`/jobs/${part(ref)}/document`);
  document.spec.replicaSpec = { ...document.spec.replicaSpec, targetReplicas: {} };
  const read = fromDocument(document);
  const text = read && toYaml(read);
  const again = text && (await call<Validation>('/validate', { method: 'POST', text }));
  if (text && again && same(again.document, document)) return text;
  return stringify(await call<object>(`/jobs/${part(ref)}/document`, { query: { short: true } }), { lineWidth: 0 });
}
