/** The tasks of a job: where each runs, since when, how it ended; its earlier attempts a click away. */

import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { Fragment, useState } from 'react';
import * as ask from '../api/queries';
import { JOB_STATES, type JobDetail, type Task } from '../api/types';
import { partOf, ranges, shortNode } from '../lib/format';
import { Fault, Skeleton } from './Notices';
import { exitTone, Glyph, Status, taskWord } from './Status';
import { Ago, Span, Until } from './Time';
import { numberOf, useAttempts } from './useAttempts';

const route = getRouteApi('/frame/jobs/$ref');
/** Fewer tasks than this are found by looking. */
const FEW = 12;
const AT_ONCE = 200;

export function TaskTable({ job }: { job: JobDetail }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const chosen = search.state ?? '';
  const choose = (state: string) => void navigate({ search: { ...search, state: state || undefined }, replace: true });
  return (
    <>
      {(job.tasks.total > FEW || chosen) && <StateFilter chosen={chosen} onChoose={choose} />}
      {chosen ? <Found job={job} state={chosen} /> : <Everyone job={job} />}
    </>
  );
}

function StateFilter({ chosen, onChoose }: { chosen: string; onChoose: (state: string) => void }) {
  return (
    <div role="group" aria-label="State of the tasks" className="flex flex-wrap gap-1 pt-2">
      {JOB_STATES.map((state) => (
        <button
          key={state}
          type="button"
          aria-pressed={chosen === state}
          onClick={() => onChoose(chosen === state ? '' : state)}
          className="inline-flex h-7 items-center gap-1.5 rounded-[4px] border border-transparent px-2 text-xs text-muted hover:text-text aria-pressed:border-line-strong aria-pressed:bg-raised aria-pressed:font-medium aria-pressed:text-text"
        >
          <Glyph state={state} size={10} />
          {state}
        </button>
      ))}
    </div>
  );
}

/** All tasks, page by page. */
function Everyone({ job }: { job: JobDetail }) {
  const list = useInfiniteQuery(ask.tasks(job.id));
  if (list.error && !list.data) return <Fault error={list.error} retry={() => void list.refetch()} />;
  if (!list.data) return <Skeleton rows={4} />;
  const tasks = list.data.pages.flatMap((page) => page.items);
  if (tasks.length === 0) return <p className="px-2.5 py-3 text-sm text-muted">Tasks appear when the job is placed.</p>;
  return <Rows job={job} tasks={tasks} more={list.hasNextPage ? () => void list.fetchNextPage() : undefined} />;
}

/** The tasks in one state, wherever they are in the list. */
function Found({ job, state }: { job: JobDetail; state: string }) {
  const [shown, setShown] = useState(AT_ONCE);
  const all = useQuery(ask.allTasks(job.id));
  if (all.error && !all.data) return <Fault error={all.error} retry={() => void all.refetch()} />;
  if (!all.data) return <Skeleton rows={4} />;
  const tasks = all.data.filter((task) => taskWord(task) === state);
  if (tasks.length === 0) return <p className="px-2.5 py-3 text-sm text-muted">No task is {state}.</p>;
  const more = tasks.length > shown ? () => setShown(shown + AT_ONCE) : undefined;
  return <Rows job={job} tasks={tasks.slice(0, shown)} more={more} />;
}

function Rows({ job, tasks, more }: { job: JobDetail; tasks: Task[]; more: (() => void) | undefined }) {
  const [open, setOpen] = useState('');
  const ranks = new Map(job.placement.map((each) => [`${each.role}-${each.index}`, each.rank]));
  const ranked = [...ranks.values()].some((rank) => rank !== null);
  return (
    <div className="relative overflow-x-auto">
      <table className="grid-table">
        <thead>
          <tr>
            <th>State</th>
            <th>Task</th>
            {ranked && <th className="num">Rank</th>}
            <th>Node</th>
            <th className="max-sm:hidden">Devices</th>
            <th className="num">Ran</th>
            <th className="num max-sm:hidden">Retries</th>
            <th className="min-w-20">Exit</th>
            <th>
              <span className="sr-only">Log</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {tasks.map((task) => {
            const name = `${task.role}-${task.index}`;
            return (
              <Fragment key={name}>
                <TaskRow
                  job={job.id}
                  log={job.allowed.includes('logs')}
                  task={task}
                  rank={ranked ? (ranks.get(name) ?? null) : undefined}
                  open={open === name}
                  onOpen={() => setOpen(open === name ? '' : name)}
                />
                {open === name && (
                  <tr>
                    <td colSpan={9} className="!bg-sunken !pl-8">
                      <Attempts job={job.id} task={task} />
                    </td>
                  </tr>
                )}
              </Fragment>
            );
          })}
        </tbody>
      </table>
      {more && (
        <button type="button" className="btn mt-2" onClick={more}>
          Show more tasks
        </button>
      )}
    </div>
  );
}

interface RowProps {
  job: string;
  /** Whether the caller may read its log. */
  log: boolean;
  task: Task;
  /** undefined: the job has no ranks. */
  rank: number | null | undefined;
  open: boolean;
  onOpen: () => void;
}

function TaskRow({ job, log, task, rank, open, onOpen }: RowProps) {
  const name = `${task.role}-${task.index}`;
  const bad = task.exit && task.exit.code !== 0;
  return (
    <tr data-task={name}>
      <td>
        <Status state={taskWord(task)} />
      </td>
      <td className="whitespace-nowrap">
        <button type="button" aria-expanded={open} onClick={onOpen} className="hover:underline" title="Show its attempts">
          {name}
        </button>
      </td>
      {rank !== undefined && <td className="num">{rank ?? '–'}</td>}
      <td title={task.node}>{task.node ? shortNode(task.node) : <span className="text-faint">–</span>}</td>
      <td className="max-sm:hidden">{task.devices.length > 0 ? ranges(task.devices) + partOf(task.share) : <span className="text-faint">–</span>}</td>
      <td className="num">
        <Span from={task.startedAt} to={task.endedAt} />
      </td>
      <td className="num whitespace-nowrap max-sm:hidden">
        {task.retries}
        {task.retryAt && (
          <span className="text-muted">
            , next <Until at={task.retryAt} />
          </span>
        )}
      </td>
      <td className={`truncate max-sm:max-w-56 sm:w-full sm:max-w-0 ${exitTone(task.exit)}`} title={task.exit?.message || task.exit?.phrase}>
        {task.exit && bad && <span className="max-sm:hidden">{task.exit.phrase} </span>}
        {task.exit && (bad ? <span className="sm:before:content-['('] sm:after:content-[')']">{task.exit.code}</span> : 0)}
      </td>
      <td>
        {log && (
          <Link to="/jobs/$ref" params={{ ref: job }} search={{ tab: 'log', task: name }} className="link" aria-label={`Log of ${name}`}>
            log
          </Link>
        )}
      </td>
    </tr>
  );
}

function Attempts({ job, task }: { job: string; task: Task }) {
  const name = `${task.role}-${task.index}`;
  const { data, error } = useAttempts(job, name);
  if (error) return <Fault error={error} />;
  if (!data) return <Skeleton rows={2} />;
  if (data.items.length === 0) return <p className="text-muted">It has not been started yet.</p>;
  return (
    <ol className="space-y-1 text-xs">
      {data.items.map((attempt) => (
        <li key={attempt.id} className="flex flex-wrap gap-x-4">
          <Link
            to="/jobs/$ref"
            params={{ ref: job }}
            search={{ tab: 'log', task: name, attempt: numberOf(attempt) }}
            className="link font-mono"
            title={attempt.id}
            aria-label={`Log of attempt ${numberOf(attempt)} of ${name}`}
          >
            {numberOf(attempt)}
          </Link>
          <span>{shortNode(attempt.node)}</span>
          <span className="text-muted">
            started <Ago at={attempt.startedAt} />, ran <Span from={attempt.startedAt} to={attempt.endedAt} />
          </span>
          {attempt.exit && (
            <span className={exitTone(attempt.exit)}>
              {attempt.exit.phrase} ({attempt.exit.code})
            </span>
          )}
        </li>
      ))}
    </ol>
  );
}
