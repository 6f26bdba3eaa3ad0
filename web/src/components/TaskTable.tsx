/** The tasks of a job: where each runs, since when, how it ended; its earlier attempts a click away. */

import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import * as ask from '../api/queries';
import { JOB_STATES, type JobDetail, type Task } from '../api/types';
import { hand } from '../lib/download';
import { partOf, ranges, shortNode } from '../lib/format';
import { filtersTasks, tasksCsv, tasksOf, type TaskFilter } from '../lib/tasklist';
import { job as texts } from '../texts/english/job';
import { fill, filled } from '../texts/fill';
import { Fault, Skeleton } from './Notices';
import { exitTone, Glyph, Status, taskWord } from './Status';
import { Ago, Span, Until } from './Time';
import { numberOf, useAttempts } from './useAttempts';
import { useRows } from './useRows';

const route = getRouteApi('/frame/jobs/$ref');
/** Fewer tasks than this are found by looking. */
const FEW = 12;

export function TaskTable({ job }: { job: JobDetail }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const filter: TaskFilter = { state: search.state ?? '', exit: search.exit ?? '', node: search.node ?? '' };
  const wanted = filtersTasks(filter);
  // Of two changes in a row the second may come before the page shows the first one.
  const choose = ({ state, exit, node }: Partial<TaskFilter>) =>
    void navigate({
      search: (now) => ({ ...now, state: (state ?? now.state) || undefined, exit: (exit ?? now.exit) || undefined, node: (node ?? now.node) || undefined }),
      replace: true,
    });
  return (
    <>
      {(job.tasks.total > FEW || wanted) && (
        <div role="search" aria-label={texts.tasks} className="flex flex-wrap items-center gap-x-3 gap-y-1 pt-2">
          <StateFilter chosen={filter.state} onChoose={(state) => choose({ state })} />
          <Word label={texts.exitCode} hint={texts.n137Or0} width="!w-28" value={filter.exit} onChange={(exit) => choose({ exit })} />
          <Word label={texts.node} hint={texts.partName} width="!w-44" value={filter.node} onChange={(node) => choose({ node })} />
        </div>
      )}
      {wanted ? <Found job={job} filter={filter} /> : <Everyone job={job} />}
      {job.tasks.total > 0 && <Export job={job} filter={filter} />}
    </>
  );
}

function Word({ label, hint, width, value, onChange }: { label: string; hint: string; width: string; value: string; onChange: (value: string) => void }) {
  return (
    <label className="inline-flex items-center gap-1.5 text-xs text-muted">
      {label}
      <input type="search" placeholder={hint} maxLength={100} className={`field ${width}`} value={value} onChange={(event) => onChange(event.target.value)} />
    </label>
  );
}

/** Gives all tasks, or those that the filter wants, to the browser as a file, and not only those that are shown. */
function Export({ job, filter }: { job: JobDetail; filter: TaskFilter }) {
  const client = useQueryClient();
  const write = useMutation({
    mutationFn: async () => {
      const all = await client.fetchQuery(ask.allTasks(job.id));
      const tasks = tasksOf(all, filter, taskWord);
      hand(new Blob([tasksCsv(tasks, job.placement, taskWord)], { type: 'text/csv' }), `${job.name}-tasks.csv`);
    },
  });
  return (
    <p className="pt-2">
      <button type="button" className="btn-bare -ml-1.5" disabled={write.isPending} onClick={() => write.mutate()}>
        {write.isPending ? texts.reading : texts.tasksAsCsv}
      </button>
      {write.error && <Fault error={write.error} />}
    </p>
  );
}

function StateFilter({ chosen, onChoose }: { chosen: string; onChoose: (state: string) => void }) {
  return (
    <div role="group" aria-label={texts.stateTasks} className="flex flex-wrap gap-1">
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
  if (tasks.length === 0) return <p className="px-2.5 py-3 text-sm text-muted">{texts.tasksAppearWhen}</p>;
  return <Rows job={job} tasks={tasks} more={list.hasNextPage ? () => void list.fetchNextPage() : undefined} />;
}

/** The tasks that a filter wants, wherever they are in the list. */
function Found({ job, filter }: { job: JobDetail; filter: TaskFilter }) {
  const all = useQuery(ask.allTasks(job.id));
  if (all.error && !all.data) return <Fault error={all.error} retry={() => void all.refetch()} />;
  if (!all.data) return <Skeleton rows={4} />;
  const tasks = tasksOf(all.data, filter, taskWord);
  const only = filter.state && !filter.exit && !filter.node;
  if (tasks.length === 0) return <p className="px-2.5 py-3 text-sm text-muted">{only ? fill(texts.noTaskIs, { state: filter.state }) : texts.taskLike}</p>;
  return <Rows job={job} tasks={tasks} more={undefined} />;
}

function Rows({ job, tasks, more }: { job: JobDetail; tasks: Task[]; more: (() => void) | undefined }) {
  const [open, setOpen] = useState('');
  const ranks = new Map(job.placement.map((each) => [`${each.role}-${each.index}`, each.rank]));
  const ranked = [...ranks.values()].some((rank) => rank !== null);
  const drawn = useRows(tasks.length, -1);
  return (
    <div className="relative overflow-x-auto">
      <table ref={drawn.table} className="grid-table" aria-label={texts.tasksJob} aria-rowcount={tasks.length + 1}>
        <thead>
          <tr>
            <th>{texts.state}</th>
            <th>{texts.task}</th>
            {ranked && <th className="num">{texts.rank}</th>}
            <th>{texts.node}</th>
            <th className="max-sm:hidden">{texts.devices}</th>
            <th className="num">{texts.ran}</th>
            <th className="num max-sm:hidden">{texts.retries}</th>
            <th className="min-w-20">{texts.exit}</th>
            <th>
              <span className="sr-only">{texts.log}</span>
            </th>
          </tr>
        </thead>
        <Left height={drawn.above} />
        {drawn.shown.map((at) => {
          const task = tasks[at];
          if (!task) return null;
          const name = `${task.role}-${task.index}`;
          return (
            <tbody key={name} ref={drawn.measure} data-index={at}>
              <TaskRow
                at={at}
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
            </tbody>
          );
        })}
        <Left height={drawn.below} />
      </table>
      {more && (
        <button type="button" className="btn mt-2" onClick={more}>
          {texts.showMoreTasks}
        </button>
      )}
    </div>
  );
}

/** The height of rows that are not drawn. */
function Left({ height }: { height: number }) {
  return (
    height > 0 && (
      <tbody aria-hidden>
        <tr style={{ height }} />
      </tbody>
    )
  );
}

interface RowProps {
  /** Its place among the tasks that are shown. */
  at: number;
  job: string;
  /** Whether the caller may read its log. */
  log: boolean;
  task: Task;
  /** undefined: the job has no ranks. */
  rank: number | null | undefined;
  open: boolean;
  onOpen: () => void;
}

function TaskRow({ at, job, log, task, rank, open, onOpen }: RowProps) {
  const name = `${task.role}-${task.index}`;
  const bad = task.exit && task.exit.code !== 0;
  return (
    <tr data-task={name} aria-rowindex={at + 2}>
      <td>
        <Status state={taskWord(task)} />
      </td>
      <td className="whitespace-nowrap">
        <button type="button" aria-expanded={open} onClick={onOpen} className="hover:underline" title={texts.showItsAttempts}>
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
            {filled(texts.next, { until: <Until at={task.retryAt} /> })}
          </span>
        )}
      </td>
      <td className={`truncate max-sm:max-w-56 sm:w-full sm:max-w-0 ${exitTone(task.exit)}`} title={task.exit?.message || task.exit?.phrase}>
        {task.exit && bad && <span className="max-sm:hidden">{task.exit.phrase} </span>}
        {task.exit && (bad ? <span className="sm:before:content-['('] sm:after:content-[')']">{task.exit.code}</span> : 0)}
      </td>
      <td>
        {log && (
          <Link to="/jobs/$ref" params={{ ref: job }} search={{ tab: 'log', task: name }} className="link" aria-label={fill(texts.logOf, { name })}>
            {texts.logRow}
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
  if (data.items.length === 0) return <p className="text-muted">{texts.hasBeenStarted}</p>;
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
            aria-label={fill(texts.logAttempt, { attempt: numberOf(attempt), name })}
          >
            {numberOf(attempt)}
          </Link>
          <span>{shortNode(attempt.node)}</span>
          <span className="text-muted">
            {filled(texts.startedRan, { time: <Ago at={attempt.startedAt} />, time2: <Span from={attempt.startedAt} to={attempt.endedAt} /> })}
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
