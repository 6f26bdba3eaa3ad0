/** The answer to a what-if question: devices and waiting jobs over time, queues and jobs before and after, assumptions. */

import { Link } from '@tanstack/react-router';
import type { JobOutcome, QueueFigures, WhatIfAnswer as Answer } from '../api/types';
import { duration } from '../lib/time';
import { move, starts, told } from '../lib/whatif';
import { wide } from '../lib/wide';
import { whatif as texts } from '../texts/english/whatif';
import { counted, fill, number as written } from '../texts/fill';
import { BeforeAfter } from './BeforeAfter';
import { Both } from './Both';
import { GoalAnswer } from './GoalAnswer';
import { WhatIfTimeline } from './WhatIfTimeline';

export function WhatIfAnswer({ answer }: { answer: Answer }) {
  const changed = answer.changes.length > 0;
  const hours = Math.round(answer.horizonSeconds / 3600);
  return (
    <div className="min-w-0 space-y-5" role="region" aria-label={texts.answer}>
      {answer.goal && <GoalAnswer goal={answer.goal} />}
      <p className="text-sm">
        {changed ? fill(texts.withChanges, { changes: answer.changes.join('; ') }) : texts.asThingsAre} <span className="text-muted">{counted(texts.coursesOf, answer.seeds, { hours })}</span>
      </p>
      <div className="grid gap-5 sm:grid-cols-2">
        <BeforeAfter title={texts.devicesInUse} before={answer.before.used} after={answer.after.used} bound={answer.after.devices} hours={hours} changed={changed} />
        <BeforeAfter title={texts.waitingJobs} before={answer.before.waiting} after={answer.after.waiting} hours={hours} changed={changed} />
      </div>
      {changed && (
        <p className="flex gap-4 text-2xs text-muted">
          <span className="flex items-center gap-1.5">
            <svg width={18} height={4} aria-hidden>
              <path d="M0 2h18" stroke="var(--muted)" strokeWidth={1.5} strokeDasharray="4 3" />
            </svg>
            {texts.legend.before}
          </span>
          <span className="flex items-center gap-1.5">
            <svg width={18} height={4} aria-hidden>
              <path d="M0 2h18" stroke="var(--accent)" strokeWidth={2} />
            </svg>
            {texts.legend.after}
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
const number = (value: number) => written(value, { maximumFractionDigits: value >= 100 ? 0 : 1 });

const COLUMNS: readonly [name: keyof typeof texts.columns, say: (figures: QueueFigures) => string, narrow: string][] = [
  ['started', (each) => number(each.started), ''],
  ['waitMedian', (each) => seconds(each.waitP50), ''],
  ['waitP95', (each) => seconds(each.waitP95), ''],
  ['devices', (each) => number(each.devices), 'max-md:hidden'],
  ['lent', (each) => number(each.lent), 'max-lg:hidden'],
  ['borrowed', (each) => number(each.borrowed), 'max-lg:hidden'],
  ['preempted', (each) => number(each.preemptions), 'max-md:hidden'],
  ['waiting', (each) => number(each.waiting), 'max-sm:hidden'],
];

function Queues({ answer, changed }: { answer: Answer; changed: boolean }) {
  if (answer.queues.length === 0) return null;
  return (
    <div {...wide} className="overflow-x-auto">
      <table className="grid-table" aria-label={texts.queues}>
        <thead>
          <tr>
            <th>{texts.queue}</th>
            {COLUMNS.map(([column, , narrow]) => (
              <th key={column} className={`num ${narrow}`}>
                {texts.columns[column]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {answer.queues.map((queue) => (
            <tr key={queue.name}>
              <td className="font-medium">{queue.name}</td>
              {COLUMNS.map(([column, say, narrow]) => (
                <td key={column} className={`num ${narrow}`}>
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
  if (jobs.length === 0) return <p className="text-sm text-muted">{texts.noJobWaits}</p>;
  return (
    <div>
      <table className="grid-table" aria-label={texts.jobs}>
        <thead>
          <tr>
            <th>{texts.job}</th>
            <th className="max-md:hidden">{texts.user}</th>
            <th className="max-sm:hidden">{texts.queue}</th>
            <th className="num max-sm:hidden">{texts.devices}</th>
            <th className="num">{texts.startsIn}</th>
            {changed && <th className="num">{texts.moves}</th>}
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
              <td className="num max-sm:hidden">{written(job.devices)}</td>
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
      {answer.jobs.length > jobs.length && <p className="pt-1.5 pl-2.5 text-xs text-muted">{counted(texts.moreJobs, answer.jobs.length - jobs.length + answer.jobsLeftOut, { command: 'corral what-if --all' })}</p>}
    </div>
  );
}

function Moves({ job, horizon }: { job: JobOutcome; horizon: number }) {
  const by = Math.round(move(job, horizon));
  if (job.added) return <span className="text-muted">{texts.added}</span>;
  if (by === 0) return <span className="text-muted">–</span>;
  return <span className={by < 0 ? 'text-accent' : 'text-fail'}>{fill(by < 0 ? texts.earlier : texts.later, { time: duration(Math.abs(by)) })}</span>;
}
