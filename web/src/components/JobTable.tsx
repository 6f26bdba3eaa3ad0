/** The list of jobs: dense, steady under the pointer, moved through with j, k and Enter. */

import { Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import type { JobState, JobSummary } from '../api/types';
import { ENDED } from '../api/types';
import { heldOf, shortNode } from '../lib/format';
import { useKeys } from '../lib/keys';
import { steady } from '../lib/steady';
import { Status } from './Status';
import { Ago, Span } from './Time';

interface Props {
  jobs: JobSummary[];
  /** Names the list that the jobs are of, "" while they are of the list before: of another list nothing is held. */
  scope: string;
  selected: string;
  onSelect: (id: string) => void;
  onLight: (id: string) => void;
  /** The nodes of each job that holds devices. */
  where: Map<string, string[]>;
}

export function JobTable({ jobs, scope, selected, onSelect, onLight, where }: Props) {
  const [over, setOver] = useState(false);
  const shown = useRef<{ scope: string; ids: string[] }>({ scope, ids: [] });
  const held = shown.current.scope === scope && (over || selected !== '');
  const { rows, held: kept } = steady(shown.current.ids, jobs, held);
  useEffect(() => {
    shown.current = { scope, ids: rows.map((row) => row.id) };
  });
  useRowKeys(rows, selected, onSelect);
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
          {kept} new · show
        </button>
      )}
      <table className="grid-table">
        <thead>
          <tr>
            <th className="w-28 max-sm:w-7">
              <span className="max-sm:sr-only">State</span>
            </th>
            <th>Job</th>
            <th className="max-md:hidden">User</th>
            <th className="max-lg:hidden">Queue</th>
            <th className="num max-lg:hidden">Priority</th>
            <th className="num max-sm:hidden">Tasks</th>
            <th className="num max-md:hidden">Devices</th>
            <th className="num">Ran</th>
            <th className="max-sm:hidden">Submitted</th>
            <th className="w-[32%] max-lg:hidden">Where, or why</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((job) =>
            job.array ? (
              <ArrayRow key={job.id} job={job} array={job.array} selected={job.id === selected} />
            ) : (
            <Row key={job.id} job={job} selected={job.id === selected} onLight={onLight} nodes={where.get(job.id)} />
            ),
          )}
        </tbody>
      </table>
    </div>
  );
}

/** What a reader wants to know beside the state: why it waits, where it runs, or how it ended. */
export function why(job: JobSummary, nodes: readonly string[] = []): string {
  if (job.state === 'waiting') return job.waiting?.message ?? '';
  if (job.state === 'failed' && job.exit)
    return `${job.exit.phrase} (${job.exit.code})${job.exit.message ? `: ${job.exit.message}` : ''}`;
  if ((job.state === 'running' || job.state === 'starting') && job.waiting) return job.waiting.message;
  if (nodes.length > 0) return nodes.slice(0, 4).map(shortNode).join(', ') + (nodes.length > 4 ? ` and ${nodes.length - 4} more` : '');
  return '';
}

/** How many of an array's jobs are in each state, the liveliest first: `3 running, 97 waiting`. */
export function counted(states: Partial<Record<JobState, number>>): [JobState, number][] {
  return LIVELIEST.flatMap((state) => (states[state] ? [[state, states[state]] as [JobState, number]] : []));
}
const LIVELIEST: readonly JobState[] = ['running', 'starting', 'stopping', 'waiting', 'failed', 'stopped', 'succeeded'];

/** All jobs of an array in one line, which leads to the list of them. */
function ArrayRow({ job, array, selected }: { job: JobSummary; array: NonNullable<JobSummary['array']>; selected: boolean }) {
  const states = counted(array.states);
  const state = states[0]?.[0] ?? job.state;
  const size = states.reduce((sum, [, many]) => sum + many, 0);
  const said = states.map(([each, many]) => `${many.toLocaleString('en')} ${each}`).join(', ');
  return (
    <tr data-array={array.tag} aria-selected={selected} className="scroll-mt-16 hover:bg-sunken aria-selected:bg-accent-ground">
      <td>
        <Status state={state} />
      </td>
      <td className="max-w-0 min-w-32 sm:w-[22%]">
        <Link to="/" search={{ tag: array.tag }} className="block truncate font-medium hover:underline">
          {array.name} <span className="font-normal text-muted">{size.toLocaleString('en')} jobs</span>
        </Link>
        <span className="line-clamp-2 text-xs text-muted lg:hidden">{said}</span>
      </td>
      <td className="max-md:hidden">{job.user}</td>
      <td className="max-lg:hidden">{job.queue}</td>
      <td className="num max-lg:hidden">{job.priority}</td>
      <td className="max-sm:hidden" />
      <td className="max-md:hidden" />
      <td />
      <td className="text-muted max-sm:hidden">
        <Ago at={job.createdAt} />
      </td>
      <td className="max-w-0 truncate text-muted max-lg:hidden" title={said}>
        {said}
      </td>
    </tr>
  );
}

interface RowProps {
  job: JobSummary;
  selected: boolean;
  onLight: (id: string) => void;
  nodes: string[] | undefined;
}

function Row({ job, selected, onLight, nodes }: RowProps) {
  const row = useRef<HTMLTableRowElement>(null);
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
      ref={row}
      data-job={job.id}
      aria-selected={selected}
      className="scroll-mt-16 cursor-pointer hover:bg-sunken aria-selected:bg-accent-ground aria-selected:shadow-[inset_3px_0_var(--accent)]"
      onPointerEnter={() => onLight(ENDED.has(job.state) ? '' : job.id)}
      onClick={(event) => {
        if (!(event.target as Element).closest('a,button') && !getSelection()?.toString())
          void navigate({ to: '/jobs/$ref', params: { ref: job.id } });
      }}
    >
      <td>
        <span className="max-sm:hidden">
          <Status state={job.state} />
        </span>
        <span className="sm:hidden" title={job.state}>
          <Status state={job.state} word="" />
        </span>
      </td>
      <td className="max-w-0 min-w-32 sm:w-[22%]">
        <Link to="/jobs/$ref" params={{ ref: job.id }} className="block truncate font-medium hover:underline">
          {job.name}
        </Link>
        <span className="block truncate text-xs text-muted md:hidden">
          <span className="sm:hidden">{job.state} · </span>
          {job.user}
        </span>
        {reason && <span className={`line-clamp-2 text-xs lg:hidden ${reasonTone}`}>{reason}</span>}
      </td>
      <td className="max-md:hidden">{job.user}</td>
      <td className="max-lg:hidden">{job.queue}</td>
      <td className="num max-lg:hidden">{job.priority}</td>
      <td className="num whitespace-nowrap max-sm:hidden">
        {ENDED.has(job.state) ? tasks.succeeded : tasks.running}
        <span className="text-faint">/{tasks.total}</span>
      </td>
      <td className="num whitespace-nowrap max-md:hidden">
        {held ?? (job.devices || <span className="text-faint">–</span>)}
        {held !== null && <span className="text-faint">/{job.devices}</span>}
      </td>
      <td className="num">
        <Span from={job.startedAt} to={job.endedAt} />
      </td>
      <td className="text-muted max-sm:hidden">
        <Ago at={job.createdAt} />
      </td>
      <td className={`max-w-0 truncate max-lg:hidden ${reasonTone}`} title={reason}>
        {reason}
      </td>
    </tr>
  );
}

function useRowKeys(rows: JobSummary[], selected: string, onSelect: (id: string) => void): void {
  const navigate = useNavigate();
  const move = (step: number) => {
    const at = rows.findIndex((row) => row.id === selected);
    const next = rows[at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + step))];
    if (next) onSelect(next.id);
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    Enter: (event) => {
      const onControl = (event.target as Element).closest('a,button,summary');
      if (selected && !onControl) void navigate({ to: '/jobs/$ref', params: { ref: selected } });
    },
    Escape: () => onSelect(''),
  });
}
