/** The list of jobs: dense, steady under the pointer, moved through with j, k and Enter. */

import { Link, useNavigate } from '@tanstack/react-router';
import { memo, useCallback, useEffect, useRef, useState } from 'react';
import type { JobState, JobSummary } from '../api/types';
import { ENDED } from '../api/types';
import { heldOf, shortNode } from '../lib/format';
import { type Column, COLUMNS, gathered, type Gathered } from '../lib/joblist';
import { useKeys, useRowSteps } from '../lib/keys';
import { steady } from '../lib/steady';
import { counts } from '../texts/english/counts';
import { list as texts } from '../texts/english/list';
import { shared } from '../texts/english/shared';
import { counted, fill, textOf } from '../texts/fill';
import { Status } from './Status';
import { Ago, Span } from './Time';
import { useRows } from './useRows';

interface Props {
  jobs: JobSummary[];
  /** Names the list that the jobs are of, "" while they are of the list before: of another list nothing is held. */
  scope: string;
  selected: string;
  onSelect: (id: string) => void;
  onLight: (id: string) => void;
  /** The nodes of each job that holds devices. */
  where: Map<string, string[]>;
  /** Columns that the reader left out. */
  hidden: ReadonlySet<Column>;
  /** What the jobs are gathered by, `user` or `sweep`; "" for one list. */
  group?: string;
  /** The jobs that the reader chose for an action on all of them. */
  chosen: ReadonlySet<string>;
  onChoose: (ids: readonly string[], choose: boolean) => void;
}

export function JobTable({ jobs, scope, selected, onSelect, onLight, where, hidden, group = '', chosen, onChoose }: Props) {
  const [over, setOver] = useState(false);
  const shown = useRef<{ scope: string; ids: string[] }>({ scope, ids: [] });
  const held = shown.current.scope === scope && (over || selected !== '');
  const { rows: all, held: kept } = steady(shown.current.ids, jobs, held);
  useEffect(() => {
    shown.current = { scope, ids: all.map((row) => row.id) };
  });
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const entries: Entry[] = group ? gathered(all, group).flatMap((each): Entry[] => [each, ...(folded.has(each.key) ? [] : each.jobs)]) : all;
  const rows = entries.filter((each): each is JobSummary => !isGroup(each));
  const fold = (key: string) =>
    setFolded((before) => {
      const next = new Set(before);
      if (!next.delete(key)) next.add(key);
      return next;
    });
  useRowKeys(rows, selected, onSelect, (id) => onChoose([id], !chosen.has(id)));
  const drawn = useRows(entries.length, entries.findIndex((each) => !isGroup(each) && each.id === selected));
  const lit = useRef(onLight);
  const choose = useRef(onChoose);
  useEffect(() => {
    lit.current = onLight;
    choose.current = onChoose;
  });
  const light = useCallback((id: string) => lit.current(id), []);
  const pick = useCallback((id: string, yes: boolean) => choose.current([id], yes), []);
  const single = rows.filter((row) => !row.array);
  const allChosen = single.length > 0 && single.every((row) => chosen.has(row.id));
  const release = () => {
    shown.current.ids = [];
    setOver(false);
    onSelect('');
  };
  return (
    <div
      className="relative"
      onPointerEnter={(event) => event.pointerType === 'mouse' && setOver(true)}
      onPointerLeave={() => {
        setOver(false);
        onLight('');
      }}
    >
      {kept > 0 && (
        <button
          type="button"
          onClick={release}
          className="absolute top-[-14px] left-1/2 z-10 -translate-x-1/2 rounded-full border border-accent bg-accent-ground px-3 py-0.5 text-xs text-accent"
        >
          {counted(texts.newShow, kept)}
        </button>
      )}
      <table ref={drawn.table} className="grid-table" aria-rowcount={entries.length + 1}>
        <thead>
          <tr>
            <th className="w-7">
              <input type="checkbox" aria-label={texts.chooseAllJobs} checked={allChosen} onChange={() => onChoose(single.map(({ id }) => id), !allChosen)} />
            </th>
            <th className="w-28 max-sm:w-7">
              <span className="max-sm:sr-only">{texts.state}</span>
            </th>
            <th>{texts.job}</th>
            {!hidden.has('user') && <th className="max-md:hidden">{texts.user}</th>}
            {!hidden.has('queue') && <th className="max-lg:hidden">{texts.queue}</th>}
            {!hidden.has('priority') && <th className="num max-lg:hidden">{texts.priority}</th>}
            {!hidden.has('tasks') && <th className="num max-sm:hidden">{texts.tasks}</th>}
            {!hidden.has('devices') && <th className="num max-md:hidden">{texts.devices}</th>}
            {!hidden.has('ran') && <th className="num">{texts.ran}</th>}
            {!hidden.has('submitted') && <th className="max-sm:hidden">{texts.submitted}</th>}
            {!hidden.has('why') && <th className="w-[32%] max-lg:hidden">{texts.why}</th>}
          </tr>
        </thead>
        <tbody>
          {drawn.above > 0 && <tr aria-hidden style={{ height: drawn.above }} />}
          {drawn.shown.map((at) => {
            const job = entries[at];
            if (!job) return null;
            if (isGroup(job))
              return <GroupRow key={`group ${job.key}`} group={job} at={at} measure={drawn.measure} columns={2 + COLUMNS.length - hidden.size} folded={folded.has(job.key)} onFold={fold} chosen={chosen} onChoose={onChoose} />;
            const row = { job, at, measure: drawn.measure, selected: job.id === selected, hidden };
            if (job.array) return <ArrayRow key={job.id} {...row} array={job.array} />;
            return <Row key={job.id} {...row} onLight={light} nodes={where.get(job.id)} chosen={chosen.has(job.id)} onChoose={pick} />;
          })}
          {drawn.below > 0 && <tr aria-hidden style={{ height: drawn.below }} />}
        </tbody>
      </table>
    </div>
  );
}

type Entry = JobSummary | Gathered;
const isGroup = (entry: Entry): entry is Gathered => 'jobs' in entry;

interface GroupProps {
  group: Gathered;
  at: number;
  measure: ((row: Element | null) => void) | undefined;
  /** Columns behind the first. */
  columns: number;
  folded: boolean;
  onFold: (key: string) => void;
  chosen: ReadonlySet<string>;
  onChoose: Props['onChoose'];
}

/** The line above the jobs of a group, which folds it and chooses all of it. */
function GroupRow({ group, at, measure, columns, folded, onFold, chosen, onChoose }: GroupProps) {
  const single = group.jobs.filter((job) => !job.array);
  const all = single.length > 0 && single.every(({ id }) => chosen.has(id));
  const states: Partial<Record<JobState, number>> = {};
  for (const job of group.jobs) states[job.state] = (states[job.state] ?? 0) + 1;
  return (
    <tr ref={measure} data-index={at} aria-rowindex={at + 2} data-group={group.name} className="bg-sunken">
      <td>
        <input type="checkbox" aria-label={fill(texts.chooseAll, { name: group.name })} disabled={single.length === 0} checked={all} onChange={() => onChoose(single.map(({ id }) => id), !all)} />
      </td>
      <td colSpan={columns}>
        <button type="button" aria-expanded={!folded} onClick={() => onFold(group.key)} className="text-left font-medium hover:underline">
          <span aria-hidden className="inline-block w-4 text-muted">{folded ? '▸' : '▾'}</span>
          {group.name} <span className="font-normal text-muted">{inStates(states).map(([state, many]) => counted(texts.inState, many, { state: textOf(shared.states, state) })).join(', ')}</span>
        </button>
      </td>
    </tr>
  );
}

/** What a reader wants to know beside the state: why it waits, where it runs, or how it ended. */
export function why(job: JobSummary, nodes: readonly string[] = []): string {
  if (job.state === 'waiting') return job.waiting?.message ?? '';
  if (job.state === 'failed' && job.exit)
    return `${job.exit.phrase} (${job.exit.code})${job.exit.message ? `: ${job.exit.message}` : ''}`;
  if ((job.state === 'running' || job.state === 'starting') && job.waiting) return job.waiting.message;
  const named = nodes.slice(0, 4).map(shortNode).join(', ');
  return nodes.length > 4 ? counted(texts.andMore, nodes.length - 4, { nodes: named }) : named;
}

/** How many of an array's jobs are in each state, the liveliest first: `3 running, 97 waiting`. */
export function inStates(states: Partial<Record<JobState, number>>): [JobState, number][] {
  return LIVELIEST.flatMap((state) => (states[state] ? [[state, states[state]] as [JobState, number]] : []));
}
const LIVELIEST: readonly JobState[] = ['running', 'starting', 'stopping', 'waiting', 'failed', 'stopped', 'succeeded'];

/** What the row of a job and that of an array are both told. */
interface Place {
  job: JobSummary;
  /** Its number in the list, from 0. */
  at: number;
  measure: ((row: Element | null) => void) | undefined;
  selected: boolean;
  hidden: ReadonlySet<Column>;
}

/** All jobs of an array in one line, which leads to the list of them. */
function ArrayRow({ job, array, selected, at, measure, hidden }: Place & { array: NonNullable<JobSummary['array']> }) {
  const states = inStates(array.states);
  const state = states[0]?.[0] ?? job.state;
  const size = states.reduce((sum, [, many]) => sum + many, 0);
  const said = states.map(([each, many]) => counted(texts.inState, many, { state: textOf(shared.states, each) })).join(', ');
  return (
    <tr ref={measure} data-index={at} aria-rowindex={at + 2} data-array={array.tag} aria-selected={selected} className="scroll-mt-16 hover:bg-sunken aria-selected:bg-accent-ground">
      <td />
      <td>
        <span className="max-sm:hidden">
          <Status state={state} />
        </span>
        <span className="sm:hidden">
          <Status state={state} word="" />
        </span>
      </td>
      <td className="max-w-0 min-w-32 sm:w-[22%]">
        <Link to="/" search={{ tag: array.tag }} className="block truncate font-medium hover:underline">
          {array.name} <span className="font-normal text-muted">{counted(counts.jobs, size)}</span>
        </Link>
        <span className="line-clamp-2 text-xs text-muted lg:hidden">{said}</span>
      </td>
      {!hidden.has('user') && <td className="max-md:hidden">{job.user}</td>}
      {!hidden.has('queue') && <td className="max-lg:hidden">{job.queue}</td>}
      {!hidden.has('priority') && <td className="num max-lg:hidden">{job.priority}</td>}
      {!hidden.has('tasks') && <td className="max-sm:hidden" />}
      {!hidden.has('devices') && <td className="max-md:hidden" />}
      {!hidden.has('ran') && <td />}
      {!hidden.has('submitted') && (
        <td className="text-muted max-sm:hidden">
          <Ago at={job.createdAt} />
        </td>
      )}
      {!hidden.has('why') && (
        <td className="max-w-0 truncate text-muted max-lg:hidden" title={said}>
          {said}
        </td>
      )}
    </tr>
  );
}

interface RowProps extends Place {
  onLight: (id: string) => void;
  nodes: string[] | undefined;
  chosen: boolean;
  onChoose: (id: string, choose: boolean) => void;
}

const Row = memo(function Row({ job, at, measure, selected, hidden, onLight, nodes, chosen, onChoose }: RowProps) {
  const row = useRef<HTMLTableRowElement | null>(null);
  const navigate = useNavigate();
  const { tasks } = job;
  const held = heldOf(job);
  const reason = why(job, nodes);
  useEffect(() => {
    if (selected) row.current?.scrollIntoView({ block: 'nearest' });
  }, [selected]);
  const reasonTone = job.state === 'failed' ? 'text-fail' : 'text-muted';
  return (
    <tr
      ref={(element) => {
        row.current = element;
        measure?.(element);
      }}
      data-index={at}
      aria-rowindex={at + 2}
      data-job={job.id}
      aria-selected={selected}
      className="scroll-mt-16 cursor-pointer hover:bg-sunken aria-selected:bg-accent-ground aria-selected:shadow-[inset_3px_0_var(--accent)]"
      onPointerEnter={() => onLight(ENDED.has(job.state) ? '' : job.id)}
      onClick={(event) => {
        if (!(event.target as Element).closest('a,button,input') && !getSelection()?.toString())
          void navigate({ to: '/jobs/$ref', params: { ref: job.id } });
      }}
    >
      <td>
        <input type="checkbox" aria-label={fill(texts.choose, { name: job.name })} checked={chosen} onChange={() => onChoose(job.id, !chosen)} />
      </td>
      <td>
        <span className="max-sm:hidden">
          <Status state={job.state} />
        </span>
        <span className="sm:hidden" title={textOf(shared.states, job.state)}>
          <Status state={job.state} word="" />
        </span>
      </td>
      <td className="max-w-0 min-w-32 sm:w-[22%]">
        <Link to="/jobs/$ref" params={{ ref: job.id }} className="block truncate font-medium hover:underline">
          {job.name}
        </Link>
        <span className="block truncate text-xs text-muted md:hidden">
          <span className="sm:hidden">{textOf(shared.states, job.state)} · </span>
          {job.user}
        </span>
        {reason && <span className={`line-clamp-2 text-xs lg:hidden ${reasonTone}`}>{reason}</span>}
      </td>
      {!hidden.has('user') && <td className="max-md:hidden">{job.user}</td>}
      {!hidden.has('queue') && <td className="max-lg:hidden">{job.queue}</td>}
      {!hidden.has('priority') && <td className="num max-lg:hidden">{job.priority}</td>}
      {!hidden.has('tasks') && (
        <td className="num whitespace-nowrap max-sm:hidden">
          {ENDED.has(job.state) ? tasks.succeeded : tasks.running}
          <span className="text-faint">/{tasks.total}</span>
        </td>
      )}
      {!hidden.has('devices') && (
        <td className="num whitespace-nowrap max-md:hidden">
          {held ?? (job.devices || <span className="text-faint">–</span>)}
          {held !== null && <span className="text-faint">/{job.devices}</span>}
        </td>
      )}
      {!hidden.has('ran') && (
        <td className="num">
          <Span from={job.startedAt} to={job.endedAt} />
        </td>
      )}
      {!hidden.has('submitted') && (
        <td className="text-muted max-sm:hidden">
          <Ago at={job.createdAt} />
        </td>
      )}
      {!hidden.has('why') && (
        <td className={`max-w-0 truncate max-lg:hidden ${reasonTone}`} title={reason}>
          {reason}
        </td>
      )}
    </tr>
  );
});

function useRowKeys(rows: JobSummary[], selected: string, onSelect: (id: string) => void, onToggle: (id: string) => void): void {
  const navigate = useNavigate();
  const step = useRowSteps(rows.map(({ id }) => id), selected, onSelect);
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    Enter: (event) => {
      const onControl = (event.target as Element).closest('a,button,summary');
      if (selected && !onControl) void navigate({ to: '/jobs/$ref', params: { ref: selected } });
    },
    x: () => {
      if (rows.some((row) => row.id === selected && !row.array)) onToggle(selected);
    },
    Escape: () => onSelect(''),
  });
}
