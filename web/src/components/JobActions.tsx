/** Edit, stop, suspend, resume, restart, scale, move, delete: each asks first, and shows the command line that does the same. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { call, part } from '../api/client';
import * as ask from '../api/queries';
import { ENDED, type JobDetail, type Role } from '../api/types';
import { jobLine, refOf } from '../lib/cli';
import { job as texts } from '../texts/english/job';
import { fill } from '../texts/fill';
import { CommandLine } from './Copy';
import { Dialog } from './Dialog';
import { JobEdit } from './JobEdit';
import { Fault } from './Notices';
import { OrderDialog } from './OrderDialog';
import { TagMany } from './TagMany';
import { useOpenQueues } from './useOpenQueues';

export type Action = 'stop' | 'suspend' | 'resume' | 'restart' | 'scale' | 'delete';

export function JobActions({ job }: { job: JobDetail }) {
  const [asking, setAsking] = useState<Action | null>(null);
  const [editing, setEditing] = useState(false);
  const ended = ENDED.has(job.state);
  const elastic = job.roles.find((role) => role.elastic);
  const may = (action: Action) => job.allowed.includes(action);
  const [moving, setMoving] = useState(false);
  const pause = job.suspended ? 'resume' : 'suspend';
  return (
    <div className="flex flex-wrap gap-2">
      {elastic && !ended && may('scale') && (
        <button type="button" className="btn" onClick={() => setAsking('scale')}>
          {texts.scale}
        </button>
      )}
      {job.state === 'waiting' && job.allowed.includes('edit') && (
        <button type="button" className="btn" onClick={() => setEditing(true)}>
          {texts.edit}
        </button>
      )}
      {!ended && may(pause) && (
        <button type="button" className="btn" onClick={() => setAsking(pause)}>
          {texts.actions[pause]}
        </button>
      )}
      {job.state === 'waiting' && job.allowed.includes('order') && (
        <button type="button" className="btn" onClick={() => setMoving(true)}>
          {texts.move}
        </button>
      )}
      <Link to="/submit" search={{ from: job.id }} className="btn">
        {texts.clone}
      </Link>
      <Link to="/compare" search={{ job: job.id }} className="btn">
        {texts.compare}
      </Link>
      {may('restart') && (
        <button type="button" className="btn" onClick={() => setAsking('restart')}>
          {texts.restart}
        </button>
      )}
      {ended && may('delete') && (
        <button type="button" className="btn btn-grave" onClick={() => setAsking('delete')}>
          {texts.delete}
        </button>
      )}
      {!ended && may('stop') && (
        <button type="button" className="btn btn-grave" disabled={job.state === 'stopping'} onClick={() => setAsking('stop')}>
          {texts.stop}
        </button>
      )}
      {editing && <JobEdit job={job} onClose={() => setEditing(false)} />}
      {moving && <OrderDialog job={job} onClose={() => setMoving(false)} />}
      {asking && <Ask action={asking} job={job} elastic={elastic} onClose={() => setAsking(null)} />}
    </div>
  );
}
const MILD: ReadonlySet<Action> = new Set(['resume', 'restart', 'scale']);

function consequence(action: Action, job: JobDetail): string {
  if (action === 'stop') return texts.tasksGetSignal;
  if (action === 'suspend') return texts.tasksGetCheckpoint;
  if (action === 'resume') return texts.waitsOldPlace;
  if (action === 'restart')
    return ENDED.has(job.state)
      ? texts.goesBackInto
      : texts.tasksEndedGoes;
  if (action === 'scale') return texts.growsShrinksWhile;
  return texts.jobLogsRemoved;
}

/** The window of one action on a job that is known by its id alone. */
export function JobDialog({ action, id, onClose }: { action: string; id: string; onClose: () => void }) {
  const { data: job, error } = useQuery(ask.job(id));
  if (job && action === 'edit') return <JobEdit job={job} onClose={onClose} />;
  if (job && action === 'tag') return <TagMany jobs={[job]} onClose={onClose} onDone={onClose} />;
  if (job && action in texts.actions) return <Ask action={action as Action} job={job} onClose={onClose} />;
  if (!error) return null;
  return (
    <Dialog title={texts.actions[action as Action] ?? (action === 'tag' ? texts.tags : texts.edit)} onClose={onClose}>
      <Fault error={error} />
    </Dialog>
  );
}

interface AskProps {
  action: Action;
  job: JobDetail;
  elastic?: Role;
  onClose: () => void;
}

function Ask({ action, job, elastic, onClose }: AskProps) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [replicas, setReplicas] = useState(elastic?.target ?? 1);
  const [queue, setQueue] = useState(job.queue);
  const queues = useOpenQueues(action === 'resume');
  const act = useMutation({
    mutationFn: () => {
      const path = `/jobs/${part(job.id)}`;
      if (action === 'delete') return call(path, { method: 'DELETE' });
      const moved = queue === job.queue ? undefined : { queue };
      const json = action === 'scale' ? { replicas, role: elastic?.name ?? '' } : action === 'resume' ? moved : undefined;
      return call(`${path}/${action}`, { method: 'POST', json });
    },
    onSuccess: async () => {
      onClose();
      if (action === 'delete') {
        client.removeQueries({ queryKey: ['job', job.id] });
        await navigate({ to: '/' });
      }
      await client.invalidateQueries({ predicate: ({ queryKey: [kind] }) => kind !== 'me' });
    },
  });
  const ref = refOf(job, useQuery(ask.me).data?.user);
  const line =
    action === 'scale'
      ? jobLine('scale', ref, replicas)
      : jobLine(action === 'delete' ? 'rm' : action, ref, ...(action === 'resume' && queue !== job.queue ? ['--queue', queue] : []));
  return (
    <Dialog title={fill(texts.actionOf, { action: texts.actions[action], name: job.name })} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          act.mutate();
        }}
      >
        <p className="text-sm text-muted">{consequence(action, job)}</p>
        {action === 'scale' && elastic && (
          <label className="mt-4 block w-48 space-y-1">
            <span className="label">
              {fill(texts.replicasOfTo, { name: elastic.name, minReplicas: elastic.minReplicas, maxReplicas: elastic.maxReplicas })}
            </span>
            <input
              type="number"
              className="field"
              min={elastic.minReplicas}
              max={elastic.maxReplicas}
              value={replicas}
              onChange={(event) => setReplicas(event.target.valueAsNumber || 0)}
            />
          </label>
        )}
        {action === 'resume' && job.allowed.includes('edit') && (
          <label className="mt-4 block w-48 space-y-1">
            <span className="label">{texts.queue}</span>
            <select className="field" value={queue} onChange={(event) => setQueue(event.target.value)}>
              {(queues.includes(queue) ? queues : [queue, ...queues]).map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        )}
        {act.error && <Fault error={act.error} />}
        <div className="flex flex-wrap items-center gap-2 pt-5">
          <CommandLine line={line} className="-ml-1.5" />
          <span className="grow" />
          <button type="button" className="btn" onClick={onClose}>
            {texts.keep}
          </button>
          <button type="submit" data-first className={`btn ${MILD.has(action) ? 'btn-main' : 'btn-grave'}`} disabled={act.isPending}>
            {texts.actions[action]}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
