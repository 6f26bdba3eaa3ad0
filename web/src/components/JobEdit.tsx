/** Other terms for a job that waits: only what is changed is asked for, and a refusal stays beside the fields. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call, part } from '../api/client';
import * as ask from '../api/queries';
import type { JobDetail } from '../api/types';
import { type JobTerms, changedTerms, editLine, writtenDuration } from '../lib/editing';
import { refOf } from '../lib/cli';
import { job as texts } from '../texts/english/job';
import { fill } from '../texts/fill';
import { CommandLine } from './Copy';
import { Dialog } from './Dialog';
import { Fault } from './Notices';
import { useOpenQueues } from './useOpenQueues';

const CLASSES = ['oppo', 'test', 'prod', 'crit'];

export function JobEdit({ job, onClose }: { job: JobDetail; onClose: () => void }) {
  const client = useQueryClient();
  const spec = job.document.spec;
  const before: JobTerms = { priority: String(spec.priority || 'test'), maxDuration: writtenDuration(spec.maxDurationSeconds ?? 0), queue: spec.queue };
  const [terms, setTerms] = useState(before);
  const changed = changedTerms(before, terms);
  const none = Object.keys(changed).length === 0;
  const names = useOpenQueues();
  const act = useMutation({
    mutationFn: () => call(`/jobs/${part(job.id)}`, { method: 'PATCH', json: changed }),
    onSuccess: async () => {
      onClose();
      await client.invalidateQueries({ predicate: ({ queryKey: [kind] }) => kind !== 'me' });
    },
  });
  const set = (change: Partial<JobTerms>) => {
    setTerms({ ...terms, ...change });
    act.reset(); // a refusal was of the terms before
  };
  const ref = refOf(job, useQuery(ask.me).data?.user);
  return (
    <Dialog title={fill(texts.editNamed, { name: job.name })} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          act.mutate();
        }}
      >
        <p className="text-sm text-muted">{texts.keepsSubmissionTime}</p>
        <div className="mt-4 grid gap-4 sm:grid-cols-3">
          <label className="block space-y-1">
            <span className="label">{texts.priority}</span>
            <input className="field" list="priority-classes" maxLength={20} value={terms.priority} onChange={(event) => set({ priority: event.target.value })} />
            <datalist id="priority-classes">
              {CLASSES.map((name) => (
                <option key={name} value={name} />
              ))}
            </datalist>
          </label>
          <label className="block space-y-1">
            <span className="label">{texts.maximumDuration}</span>
            <input className="field" placeholder={texts.noLimit} maxLength={50} value={terms.maxDuration} onChange={(event) => set({ maxDuration: event.target.value })} />
          </label>
          <label className="block space-y-1">
            <span className="label">{texts.queue}</span>
            <select className="field" value={terms.queue} onChange={(event) => set({ queue: event.target.value })}>
              {[...new Set([before.queue, ...names])].map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        </div>
        {act.error && <Fault error={act.error} />}
        <div className="flex flex-wrap items-center gap-2 pt-5">
          {!none && <CommandLine line={editLine(ref, changed)} className="-ml-1.5" />}
          <span className="grow" />
          <button type="button" className="btn" onClick={onClose}>
            {texts.keep}
          </button>
          <button type="submit" data-first className="btn btn-main" disabled={none || act.isPending}>
            {texts.change}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
