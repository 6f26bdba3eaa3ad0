/** Cordon, drain, uncordon: what administrators do to a node. Each asks first, and shows what would be moved. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { call, part } from '../api/client';
import * as ask from '../api/queries';
import type { Node, NodeJob } from '../api/types';
import { nodeLine } from '../lib/cli';
import { shortNode } from '../lib/format';
import { counts } from '../texts/english/counts';
import { nodes as texts } from '../texts/english/nodes';
import { counted, fill } from '../texts/fill';
import { CommandLine } from './Copy';
import { Dialog } from './Dialog';
import { Fault } from './Notices';

type Action = 'cordon' | 'drain' | 'uncordon';

export function NodeActions({ node }: { node: Node }) {
  const [asking, setAsking] = useState<Action | null>(null);
  const { data: me } = useQuery(ask.me);
  const admin = me?.role === 'admin';
  const offered: Action[] = node.cordon ? [...(node.cordon.drain === 'now' ? [] : ['drain' as const]), 'uncordon'] : ['cordon', 'drain'];
  return (
    <div className="flex flex-wrap gap-2">
      {offered.map((action) => (
        <button key={action} type="button" className="btn !h-7" disabled={!admin} title={admin ? undefined : texts.administratorsCloseOpen} onClick={() => setAsking(action)}>
          {texts.actions[action]}
        </button>
      ))}
      {asking && <Ask action={asking} node={node} onClose={() => setAsking(null)} />}
    </div>
  );
}

function Ask({ action, node, onClose }: { action: Action; node: Node; onClose: () => void }) {
  const client = useQueryClient();
  const [why, setWhy] = useState(node.cordon?.why ?? '');
  const [afterJobs, setAfterJobs] = useState(false);
  const [grace, setGrace] = useState('');
  const drains = action === 'drain';
  const graceSeconds = drains && !afterJobs && grace !== '' ? Number(grace) : null;
  const reason = why.trim();
  const act = useMutation({
    mutationFn: () => {
      const path = `/nodes/${node.name.split('/').map(part).join('/')}/${action}`;
      if (action === 'uncordon') return call(path, { method: 'POST' });
      return call(path, { method: 'POST', json: drains ? { why: reason, afterJobs, graceSeconds } : { why: reason } });
    },
    onSuccess: async () => {
      onClose();
      await client.invalidateQueries({ queryKey: ['cluster'] });
    },
  });
  return (
    <Dialog title={fill(texts.actionOf, { action: texts.actions[action], name: shortNode(node.name) })} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          act.mutate();
        }}
      >
        <p className="text-sm text-muted">{texts.consequences[action]}</p>
        {drains && (
          <fieldset className="space-y-2 pt-4 text-sm">
            <legend className="sr-only">{texts.itsRunningTasks}</legend>
            <Way chosen={!afterJobs} onChoose={() => setAfterJobs(false)} title={texts.moveTasksNow} first>
              {texts.eachGetsCheckpoint}
            </Way>
            <Way chosen={afterJobs} onChoose={() => setAfterJobs(true)} title={texts.letJobsEnd}>
              {texts.nothingDisturbedNode}
            </Way>
          </fieldset>
        )}
        {action !== 'uncordon' && <Affected jobs={node.jobs} tasks={node.tasks} then={!drains ? 'runs-on' : afterJobs ? 'to-wait-for' : 'to-be-moved'} />}
        <div className="flex flex-wrap gap-x-4 gap-y-3 pt-4 empty:hidden">
          {action !== 'uncordon' && (
            <label className="block min-w-48 grow space-y-1">
              <span className="label">{texts.why}</span>
              <input className="field" maxLength={500} data-first={!drains} value={why} onChange={(event) => setWhy(event.target.value)} placeholder={texts.newCables} />
            </label>
          )}
          {drains && !afterJobs && (
            <label className="block w-44 space-y-1">
              <span className="label">{texts.graceSecondsMost}</span>
              <input type="number" className="field" min={0} max={86_400} value={grace} onChange={(event) => setGrace(event.target.value)} placeholder={texts.eachJobSays} />
            </label>
          )}
        </div>
        {act.error && <Fault error={act.error} />}
        <div className="flex flex-wrap items-center gap-2 pt-5">
          <CommandLine line={nodeLine(action, node.name, { why: reason, afterJobs: drains && afterJobs, grace: graceSeconds })} className="-ml-1.5" />
          <div className="ml-auto flex gap-2">
            <button type="button" className="btn" onClick={onClose}>
              {texts.leaveIt}
            </button>
            <button type="submit" data-first={action === 'uncordon'} className={`btn ${drains && !afterJobs && node.tasks > 0 ? 'btn-grave' : 'btn-main'}`} disabled={act.isPending}>
              {texts.actions[action]}
            </button>
          </div>
        </div>
      </form>
    </Dialog>
  );
}

interface WayProps {
  chosen: boolean;
  onChoose: () => void;
  title: string;
  first?: boolean;
  children: string;
}

function Way({ chosen, onChoose, title, first = false, children }: WayProps) {
  return (
    <label className="flex items-start gap-2">
      <input type="radio" name="way" className="mt-1" checked={chosen} onChange={onChoose} data-first={first} />
      <span>
        {title}
        <span className="block text-xs text-muted">{children}</span>
      </span>
    </label>
  );
}

/** Whose tasks are on the node. */
function Affected({ jobs, tasks, then }: { jobs: readonly NodeJob[]; tasks: number; then: keyof typeof texts.affected }) {
  if (tasks === 0) return <p className="pt-4 text-sm">{texts.nothingRunsThere}</p>;
  return (
    <div className="pt-4">
      <h3 className="pb-1 text-xs font-medium text-muted">
        {fill(texts.affected[then], { tasks: counted(counts.tasks, tasks), jobs: counted(counts.jobs, jobs.length) })}
      </h3>
      <ul aria-label={texts.whatRunsThere} className="max-h-48 overflow-y-auto border border-line bg-sunken px-3 py-1.5 text-sm">
        {jobs.map((job) => (
          <li key={job.id} className="flex gap-3 py-0.5" data-job={job.id}>
            <span className="min-w-0 grow truncate">
              <Link to="/jobs/$ref" params={{ ref: job.id }} className="link">
                {job.name}
              </Link>
              <span className="text-muted"> {job.user}</span>
            </span>
            <span className="whitespace-nowrap text-muted">
              {counted(counts.tasks, job.tasks)}
              {job.devices > 0 && `, ${counted(counts.devices, job.devices)}`}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}
