/** The parts of a window about several jobs: their names, how far it is, and those that were refused. */

import type { JobSummary } from '../api/types';
import { list as texts } from '../texts/english/list';
import { counted } from '../texts/fill';
import type { Refusal } from './useEach';

/** Names that are listed; the others are counted. */
const NAMED = 12;

export function Names({ jobs, label }: { jobs: readonly JobSummary[]; label: string }) {
  return (
    <ul className="max-h-48 overflow-y-auto py-2 text-sm" aria-label={label} tabIndex={0}>
      {jobs.slice(0, NAMED).map((job) => (
        <li key={job.id}>
          {job.name} <span className="text-muted">{job.user}</span>
        </li>
      ))}
      {jobs.length > NAMED && <li className="text-muted">{counted(texts.more, jobs.length - NAMED)}</li>}
    </ul>
  );
}

export function Refusals({ refused }: { refused: readonly Refusal[] }) {
  if (refused.length === 0) return null;
  return (
    <ul role="alert" className="max-h-48 overflow-y-auto border-l-[3px] border-fail bg-fail-ground px-4 py-3 text-sm">
      {refused.map(({ job, message }) => (
        <li key={job.id}>
          {job.name}: {message}
        </li>
      ))}
    </ul>
  );
}
