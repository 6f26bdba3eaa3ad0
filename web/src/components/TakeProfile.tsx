/** Begins to take a profile: of which kind, of which task, for how long. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import * as ask from '../api/profiles';
import type { JobDetail, ProfileView } from '../api/types';
import { KINDS, LONGEST } from '../lib/profiles';
import { Fault } from './Notices';

type What = ProfileView['what'];
const USUAL = 2;

export function TakeProfile({ job, going, onTaken }: { job: JobDetail; going: boolean; onTaken: (id: string) => void }) {
  const [what, setWhat] = useState<What>('python');
  const [seconds, setSeconds] = useState(USUAL);
  const [task, setTask] = useState('');
  const client = useQueryClient();
  const longest = LONGEST[what];
  const take = useMutation({
    mutationFn: () => ask.take(job.id, { what, seconds: Math.min(seconds, longest), tasks: task.trim() ? [task.trim()] : [] }),
    onSuccess: async ({ id }) => {
      await client.invalidateQueries({ queryKey: ['profiles', 'of', job.id] });
      onTaken(id);
    },
  });
  const running = job.tasks.running > 0;
  const offered = job.document.spec?.profile === true;
  return (
    <form
      aria-label="Take a profile"
      className="flex flex-wrap items-end gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        take.mutate();
      }}
    >
      <label className="text-xs text-muted">
        What
        <select className="field mt-1 block !w-40" value={what} onChange={(event) => setWhat(event.target.value as What)}>
          {(Object.keys(KINDS) as What[]).map((each) => (
            <option key={each} value={each}>
              {KINDS[each]}
            </option>
          ))}
        </select>
      </label>
      {longest > 0 && (
        <label className="text-xs text-muted">
          Seconds
          <input className="field mt-1 block !w-20" type="number" required min={1} max={longest} value={seconds || ''} onChange={(event) => setSeconds(Number(event.target.value))} />
        </label>
      )}
      <label className="text-xs text-muted">
        Task
        <input className="field mt-1 block !w-40" placeholder="all that run" value={task} onChange={(event) => setTask(event.target.value)} />
      </label>
      <button type="submit" className="btn btn-main" disabled={!running || going || take.isPending}>
        Take a profile
      </button>
      {!running && <p className="w-full text-xs text-muted">A profile is taken while tasks of the job run.</p>}
      {(what === 'jax' || what === 'tensorflow') && <p className="w-full text-xs text-muted">The program has to open the profiler server of its framework.</p>}
      {what === 'torch' && !offered && <p className="w-full text-xs text-muted">PyTorch traces itself only if the job file says profile: true.</p>}
      {take.error && (
        <div className="w-full">
          <Fault error={take.error} />
        </div>
      )}
    </form>
  );
}
