/** A stored job as a file to begin another with. */

import { fromDocument, same, toYaml } from '../lib/jobform';
import { call, part } from './client';
import type { JobDocument, Validation } from './types';

/** The file of a stored job: a short one where that says all of it, else its whole document. */
export async function copyOf(ref: string): Promise<string> {
  const document = await call<JobDocument>(`/jobs/${part(ref)}/document`);
  document.spec.replicaSpec = { ...document.spec.replicaSpec, targetReplicas: {} };
  const read = fromDocument(document);
  const text = read && toYaml(read);
  const again = text && (await call<Validation>('/validate', { method: 'POST', text }));
  return text && again && same(again.document, document) ? text : `${JSON.stringify(document, null, 2)}\n`;
}
