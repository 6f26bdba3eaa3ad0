/** The answer to a what-if question: devices and waiting jobs over time, queues and jobs before and after, assumptions. */

import { Link } from '@tanstack/react-router';
import type { JobOutcome, QueueFigures, WhatIfAnswer as Answer } from '../api/types';
import { count } from '../lib/format';
import { duration } from '../lib/time';
import { move, starts, told } from '../lib/whatif';
import { wide } from '../lib/wide';
import { BeforeAfter } from './BeforeAfter';
import { Both } from './Both';
import { GoalAnswer } from './GoalAnswer';
import { WhatIfTimeline } from './WhatIfTimeline';

export function WhatIfAnswer({ answer }: { answer: Answer }) {
  const changed = answer.changes.length > 0;
  const hours = Math.round(answer.horizonSeconds / 3600);
  return (
    <div className="min-w-0 space-y-5" role="region" aria-label="Answer">
      {answer.goal && <GoalAnswer goal={answer.goal} />}
      <p className="text-sm">
        {changed ? `With ${answer.changes.join('; ')}.` : 'As things are.'} <span className="text-muted">{count(answer.seeds, 'course')} of {hours} h.</span>
      </p>
      <div className="grid gap-5 sm:grid-cols-2">
        <BeforeAfter title="Devices in use" before={answer.before.used} after={answer.after.used} bound={answer.after.devices} hours={hours} changed={changed} />
        <BeforeAfter title="Waiting jobs" before={answer.before.waiting} after={answer.after.waiting} hours={hours} changed={changed} />
      </div>
      {changed && (
        <p className="flex gap-4 text-2xs text-muted">
          <span className="flex items-center gap-1.5">
            <svg width={18} height={4} aria-hidden>
              <path d="M0 2h18" stroke="var(--muted)" strokeWidth={1.5} strokeDasharray="4 3" />
            </svg>
            as things are
          </span>
          <span className="flex items-center gap-1.5">
            <svg width={18} height={4} aria-hidden>
              <path d="M0 2h18" stroke="var(--accent)" strokeWidth={2} />
            </svg>
            with the changes
          </span>
        </p>
      )}
      <WhatIfTimeline answer={answer} changed={changed} />
      <Queues answer={answer} changed={changed} />
      <Jobs answer={answer} changed={changed} />
      <ul className="list-disc space-y-0.5 pl-5 text-xs text-muted">
        {answer.assumptions.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
    </div>
  );
}

const seconds = (value: number | null | undefined) => (value === null || value === undefined ? '–' : duration(Math.round(value)));
const number = (value: number) => (value >= 100 ? String(Math.round(value)) : String(Math.round(value * 10) / 10));

const COLUMNS: readonly [word: string, say: (figures: QueueFigures) => string, narrow: string][] = [
  ['Starts', (each) => number(each.started), ''],
  ['Wait, median', (each) => seconds(each.waitP50), ''],
  ['Wait, p95', (each) => seconds(each.waitP95), ''],
  ['Devices', (each) => number(each.devices), 'max-md:hidden'],
  ['Lent', (each) => number(each.lent), 'max-lg:hidden'],
  ['Borrowed', (each) => number(each.borrowed), 'max-lg:hidden'],
  ['Preempted', (each) => number(each.preemptions), 'max-md:hidden'],
  ['Still waiting', (each) => number(each.waiting), 'max-sm:hidden'],
];

function Queues({ answer, changed }: { answer: Answer; changed: boolean }) {
  if (answer.queues.length === 0) return null;
  return (
    <div {...wide} className="overflow-x-auto">
      <table className="grid-table" aria-label="Queues">
        <thead>
          <tr>
            <th>Queue</th>
            {COLUMNS.map(([word, , narrow]) => (
              <th key={word} className={`num ${narrow}`}>
                {word}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {answer.queues.map((queue) => (
            <tr key={queue.name}>
              <td className="font-medium">{queue.name}</td>
              {COLUMNS.map(([word, say, narrow]) => (
                <td key={word} className={`num ${narrow}`}>
                  <Both before={say(queue.before)} after={say(queue.after)} changed={changed} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Jobs({ answer, changed }: { answer: Answer; changed: boolean }) {
  const jobs = told(answer);
  if (jobs.length === 0) return <p className="text-sm text-muted">No job waits.</p>;
  return (
    <div>
      <table className="grid-table" aria-label="Jobs">
        <thead>
          <tr>
            <th>Job</th>
            <th className="max-md:hidden">User</th>
            <th className="max-sm:hidden">Queue</th>
            <th className="num max-sm:hidden">Devices</th>
            <th className="num">Starts in</th>
            {changed && <th className="num">Moves</th>}
          </tr>
        </thead>
        <tbody>
          {jobs.map((job) => (
            <tr key={job.id}>
              <td className="max-w-0 min-w-24 truncate sm:w-[30%]">
                {job.user && !job.added ? (
                  <Link to="/jobs/$ref" params={{ ref: job.id }} className="font-medium hover:underline">
                    {job.name}
                  </Link>
                ) : (
                  <span className="font-medium">{job.name}</span>
                )}
              </td>
              <td className="max-md:hidden">{job.user}</td>
              <td className="max-sm:hidden">{job.queue}</td>
              <td className="num max-sm:hidden">{job.devices}</td>
              <td className="num">
                <Both before={job.added ? '–' : starts(job.before, answer.seeds, job.neverBefore)} after={starts(job.after, answer.seeds, job.neverAfter)} changed={changed} />
              </td>
              {changed && (
                <td className="num">
                  <Moves job={job} horizon={answer.horizonSeconds} />
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {answer.jobs.length > jobs.length && <p className="pt-1.5 pl-2.5 text-xs text-muted">{count(answer.jobs.length - jobs.length + answer.jobsLeftOut, 'more job')}; corral what-if --all lists them.</p>}
    </div>
  );
}

function Moves({ job, horizon }: { job: JobOutcome; horizon: number }) {
  const by = Math.round(move(job, horizon));
  if (job.added) return <span className="text-muted">new</span>;
  if (by === 0) return <span className="text-muted">–</span>;
  return <span className={by < 0 ? 'text-accent' : 'text-fail'}>{`${duration(Math.abs(by))} ${by < 0 ? 'earlier' : 'later'}`}</span>;
}
