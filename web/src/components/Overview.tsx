/** A job on one page: why it waits or how it ended, where it stands in the cluster, its tasks, its log. */

import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import * as overview from '../api/overview';
import * as ask from '../api/queries';
import { ENDED, type JobDetail } from '../api/types';
import { racks, type Rack } from '../lib/cells';
import { heldOf } from '../lib/format';
import { marks } from '../lib/marks';
import { counts } from '../texts/english/counts';
import { job as texts } from '../texts/english/job';
import { counted, fill, number } from '../texts/fill';
import { ClusterMap } from './ClusterMap';
import { ExitNote } from './ExitNote';
import { IdleNotice } from './IdleNotice';
import { JobCache } from './JobCache';
import { JobEfficiency } from './JobEfficiency';
import { JobLog } from './JobLog';
import { JobPreflight } from './JobPreflight';
import { JobRanks } from './JobRanks';
import { JobSeries } from './JobSeries';
import { Receipts } from './Receipts';
import { Services } from './Services';
import { TaskTable } from './TaskTable';
import { Waiting } from './Waiting';

export function Overview({ job }: { job: JobDetail }) {
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-x-8 gap-y-6 min-[1180px]:grid-cols-[minmax(0,1fr)_minmax(26rem,0.85fr)]">
      <div className="min-w-0 space-y-6">
        {job.state === 'waiting' && <Waiting job={job} />}
        {lacks(job) && <Growth job={job} />}
        {job.state === 'failed' && <ExitNote job={job} />}
        {job.allowed.includes('metrics') && job.devices > 0 && <IdleNotice job={job} />}
        {goesOn(job).concat(job.notes).map((note) => (
          <p key={note} className="border-l-[3px] border-line-strong px-4 py-1 text-sm text-muted">
            {note}
          </p>
        ))}
        <Services job={job} />
        {!ENDED.has(job.state) && <Placement job={job} />}
        {job.allowed.includes('metrics') && <JobSeries job={job} />}
        {job.allowed.includes('metrics') && <JobEfficiency job={job} />}
        <JobRanks job={job} />
        <JobPreflight job={job} />
        <JobCache job={job} />
        {job.receipts.length > 0 && <Receipts receipts={job.receipts} />}
        <section aria-label={texts.tasks}>
          <h2 className="heading">
            {texts.tasks}
            <span className="text-xs font-normal text-muted">
              {job.roles.map((role) => fill(role.elastic ? texts.elasticReplicas : texts.roleReplicas, { target: number(role.target), role: role.name, least: role.minReplicas, most: role.maxReplicas })).join(', ')}
              {targetsOf(job)}
            </span>
          </h2>
          <TaskTable job={job} />
        </section>
      </div>
      <div className="min-w-0 min-[1180px]:sticky min-[1180px]:top-16 min-[1180px]:self-start">
        {job.allowed.includes('logs') ? (
          <JobLog job={job} height="min(34rem, calc(100dvh - 8rem))" />
        ) : (
          <p className="border-l-[3px] border-line-strong px-4 py-1 text-sm text-muted">
            {fill(texts.administratorsMayRead, { user: job.user })}
          </p>
        )}
      </div>
    </div>
  );
}

/** Whether a job that runs has tasks that wait for room. */
function lacks(job: JobDetail): boolean {
  return job.state === 'running' && job.tasks.waiting > 0;
}

/** What a job that runs could still get, and why it does not. */
function Growth({ job }: { job: JobDetail }) {
  const { data } = useQuery(ask.explanation(job.id, true));
  if (!data?.reasons) return null;
  return (
    <section aria-label={texts.whatCouldStill} className="border-l-[3px] border-line-strong px-4 py-1 text-sm text-muted">
      {data.message}
    </section>
  );
}

/** Why a job that is ending will run again, or which task of one that runs is tried again and when. */
function goesOn(job: JobDetail): string[] {
  return job.state !== 'waiting' && job.waiting ? [job.waiting.message] : [];
}

const SHOWN = 4;

/** What the scheduler has decided for the counted role, in words: `; target 2 on local/node1, 1 on local/node2`. */
export function targetsOf(job: JobDetail): string {
  const targets = Object.entries(job.document.spec.replicaSpec.targetReplicas ?? {});
  if (targets.length === 0) return '';
  const named = targets.slice(0, SHOWN).map(([node, replicas]) => fill(texts.replicasOn, { replicas: number(replicas), node }));
  const more = counted(counts.moreNodes, targets.length - SHOWN);
  return fill(targets.length > SHOWN ? texts.targetMore : texts.target, { named: named.join(', '), more });
}

/** The racks that hold something of the job; all of them while it holds nothing. */
export function racksOf(all: Rack[], job: string): Rack[] {
  const holding = all.filter((rack) =>
    rack.nodes.some((node) => node.groups.some((group) => group.runs.some((run) => run.job?.id === job))),
  );
  return holding.length > 0 ? holding : all;
}

const OVER: ReadonlySet<string> = new Set(['attempt-completed', 'completed']);

/** What of the cluster a job holds now: tasks that have ended keep their places on record, and hold nothing. */
export function placedOf(job: JobDetail): string {
  const live = job.placement.filter((each) => !OVER.has(each.state));
  const nodes = new Set(live.map((each) => each.node)).size;
  return fill(texts.placedOn, { devices: counted(counts.devices, heldOf(job) ?? job.devices), nodes: counted(counts.nodes, nodes) });
}

function Placement({ job }: { job: JobDetail }) {
  const { data } = useQuery(ask.cluster);
  const { data: owners } = useQuery(overview.cells);
  const all = useMemo(() => (data ? racks(data) : []), [data]);
  const marked = useMemo(() => marks(owners?.cell), [owners]);
  const placed = job.placement.length > 0;
  if (all.length === 0 || (placed && job.devices === 0)) return null;
  const { required, preferred } = job.document.spec.topology;
  const asked = [required && fill(texts.allInOne, { level: required }), preferred && fill(texts.inOneIfPossible, { level: preferred })].filter(Boolean);
  return (
    <section aria-label={texts.placement}>
      <h2 className="heading">
        {placed ? texts.placement : texts.theClusterNow}
        <span className="text-xs font-normal text-muted">
          {placed ? placedOf(job) : fill(texts.itNeeds, { devices: counted(counts.devices, job.devices) })}
          {asked.length > 0 && `, ${asked.join(', ')}`}
        </span>
      </h2>
      <div className="pt-3">
        <ClusterMap racks={placed ? racksOf(all, job.id) : all} lit={placed ? job.id : ''} marks={marked} compact />
      </div>
    </section>
  );
}
