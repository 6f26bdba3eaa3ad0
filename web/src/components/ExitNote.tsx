/** How a job ended badly: the code in words, which task, and the last lines that it printed. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { request } from '../api/client';
import { logPath } from '../api/logs';
import * as ask from '../api/queries';
import type { JobDetail } from '../api/types';
import { plain } from '../lib/ansi';
import { Glyph, taskWord } from './Status';

const LINES = 14;
const CLASSES: Record<string, string> = {
  transient: 'A passing trouble: it is tried again without being counted.',
  permanent: 'Trying again would not help.',
  conflict: 'Something it needs was taken; it is tried again after a pause.',
  unknown: 'The program ended so by itself; it is tried again as often as the retry policy says.',
};

/** The last line is what matters: show it first. */
function toEnd(shown: HTMLPreElement | null) {
  if (shown) shown.scrollTop = shown.scrollHeight;
}

export function ExitNote({ job }: { job: JobDetail }) {
  const failing = useQuery({
    ...ask.allTasks(job.id),
    select: (tasks) => {
      const failed = tasks.filter((task) => taskWord(task) === 'failed');
      return failed.sort((a, b) => (a.endedAt ?? '').localeCompare(b.endedAt ?? ''))[0] ?? null;
    },
  });
  const task = failing.data ? `${failing.data.role}-${failing.data.index}` : '';
  const tail = useQuery({
    queryKey: ['job', job.id, 'tail', task],
    queryFn: async ({ signal }) =>
      (await request(logPath({ ref: job.id, task }), { query: { tail: LINES, ...(task ? { attempt: 'latest' } : {}) }, signal })).text(),
    enabled: task !== '' && job.allowed.includes('logs'),
    retry: false,
  });
  const exit = failing.data?.exit ?? job.exit;
  if (!exit) return null;
  return (
    <section aria-label="How it ended" className="border-l-[3px] border-fail bg-fail-ground px-4 py-3 text-sm">
      <h2 className="flex items-center gap-2 text-xs font-medium text-fail">
        <Glyph state="failed" /> How it ended
      </h2>
      <p className="pt-1 text-base">
        {task || 'It'} ended with code {exit.code} <span className="text-muted">({exit.phrase})</span>
      </p>
      {exit.message && <p className="pt-1 whitespace-pre-wrap">{exit.message}</p>}
      <p className="pt-1 text-xs text-muted">{CLASSES[exit.class]}</p>
      {tail.data && (
        <>
          <pre ref={toEnd} className="mt-3 max-h-64 overflow-auto border border-line bg-sunken px-3 py-2 font-mono text-xs leading-[18px] text-text" tabIndex={0} aria-label={`The last lines of ${task}`}>
            {plain(tail.data)}
          </pre>
          <p className="pt-1 text-xs text-muted">
            The last lines of {task}.{' '}
            <Link to="/jobs/$ref" params={{ ref: job.id }} search={{ tab: 'log', task }} className="link">
              The whole log
            </Link>
          </p>
        </>
      )}
    </section>
  );
}
