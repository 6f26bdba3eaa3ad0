/** How a job ended badly: the code in words, which task, and the last lines that it printed. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { request } from '../api/client';
import { logPath } from '../api/logs';
import * as ask from '../api/queries';
import type { JobDetail } from '../api/types';
import { plain } from '../lib/ansi';
import { job as texts } from '../texts/english/job';
import { fill, filled, textOf } from '../texts/fill';
import { Glyph, taskWord } from './Status';

const LINES = 14;

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
    <section aria-label={texts.howItEnded} className="border-l-[3px] border-fail bg-fail-ground px-4 py-3 text-sm">
      <h2 className="flex items-center gap-2 text-xs font-medium text-fail">
        <Glyph state="failed" /> {texts.howItEnded}
      </h2>
      <p className="pt-1 text-base">
        {filled(task ? texts.taskEnded : texts.itEnded, { task, code: exit.code, phrase: <span className="text-muted">({exit.phrase})</span> })}
      </p>
      {exit.message && <p className="pt-1 whitespace-pre-wrap">{exit.message}</p>}
      <p className="pt-1 text-xs text-muted">{textOf(texts.classes, exit.class)}</p>
      {tail.data && (
        <>
          <pre ref={toEnd} className="mt-3 max-h-64 overflow-auto border border-line bg-sunken px-3 py-2 font-mono text-xs leading-[18px] text-text" tabIndex={0} aria-label={fill(texts.lastLines, { task })}>
            {plain(tail.data)}
          </pre>
          <p className="pt-1 text-xs text-muted">
            {filled(texts.lastLinesMore, { task, link: <Link to="/jobs/$ref" params={{ ref: job.id }} search={{ tab: 'log', task }} className="link">
              {texts.theWholeLog}
            </Link> })}
          </p>
        </>
      )}
    </section>
  );
}
