/** Why the next job waits: the first waiting job with its reason in a sentence, and those behind it. */

import { Link } from '@tanstack/react-router';
import type { JobSummary, LineEntry } from '../api/types';
import { counts } from '../texts/english/counts';
import { list as texts } from '../texts/english/list';
import { counted, filled } from '../texts/fill';
import { Glyph } from './Status';
import { Ago } from './Time';

const SHOWN_BEHIND = 3;

/** What waits for something else than room is not in the line: it joins when that has happened. */
const joined = (job: JobSummary) => Number(job.waiting?.code === 'dependency');

/** What can never start as it is holds up no other job. */
const never = (job: JobSummary) => Number(job.waiting?.possible === false);

/** The order in which waiting jobs are considered: the scheduler's line, or by what it last said is ahead of each. */
export function inLine(jobs: readonly JobSummary[], line: readonly LineEntry[] = []): JobSummary[] {
  const position = new Map(line.map((entry) => [entry.job, entry.position]));
  return [...jobs].sort(
    (a, b) =>
      never(a) - never(b) ||
      (position.get(a.id) ?? Infinity) - (position.get(b.id) ?? Infinity) ||
      joined(a) - joined(b) ||
      (a.waiting?.ahead ?? Infinity) - (b.waiting?.ahead ?? Infinity) ||
      b.priority - a.priority ||
      a.createdAt.localeCompare(b.createdAt),
  );
}

export function NextInLine({ jobs, more, line = [] }: { jobs: readonly JobSummary[]; more: boolean; line?: readonly LineEntry[] }) {
  const [first, ...rest] = inLine(jobs, line);
  if (!first)
    return (
      <p className="text-sm text-muted">
        {filled(texts.startsAtOnce, { what: <span className="font-medium text-text">{texts.nothingWaits}</span> })}
      </p>
    );
  const shown = rest.slice(0, SHOWN_BEHIND);
  const hidden = rest.length - SHOWN_BEHIND;
  return (
    <div className="text-sm">
      <p className="flex items-center gap-2 text-xs text-wait">
        <Glyph state="waiting" />
        {never(first) ? texts.neverStarts : texts.nextStart}
      </p>
      <p className="pt-1">
        <Name job={first} /> <span className="text-muted">{filled(texts.ofUser, { user: first.user, need: need(first, line), time: <Ago at={first.createdAt} /> })}</span>
      </p>
      <p className="max-w-[64ch] border-l-2 border-wait py-0.5 pl-3 my-2">{first.waiting?.message ?? texts.schedulerNotLooked}</p>
      {rest.length > 0 && (
        <ol className="space-y-1 text-xs text-muted">
          {shown.map((job) => (
            <li key={job.id} className="flex min-w-0 gap-2">
              <span className="shrink-0">{never(job) ? texts.never : texts.then}</span>
              <span className="shrink-0">
                <Name job={job} />
              </span>
              <span className="truncate" title={job.waiting?.message}>
                {job.waiting?.message ?? need(job, line)}
              </span>
            </li>
          ))}
          {(hidden > 0 || more) && (
            <li>
              <Link to="/line" className="link">
                {more ? texts.allWait : counted(texts.moreWait, hidden)}
              </Link>
            </li>
          )}
        </ol>
      )}
    </div>
  );
}

function Name({ job }: { job: JobSummary }) {
  return (
    <Link to="/jobs/$ref" params={{ ref: job.id }} className="font-semibold text-text hover:underline">
      {job.name}
    </Link>
  );
}

/** What a job needs to begin, as the line has it: an elastic one less than it asks for. */
function need(job: JobSummary, line: readonly LineEntry[]): string {
  const entry = line.find((each) => each.job === job.id);
  if (entry && entry.devices > 0) return counted(counts.devices, entry.devices);
  return job.devices > 0 ? counted(counts.devices, job.devices) : counted(counts.tasks, job.tasks.total);
}
