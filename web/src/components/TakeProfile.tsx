/** Begins to take a profile: of which kind, of which task, for how long. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import * as ask from '../api/profiles';
import type { JobDetail, ProfileView } from '../api/types';
import { LONGEST } from '../lib/profiles';
import { profiles as texts } from '../texts/english/profiles';
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
      aria-label={texts.takeAProfile}
      className="flex flex-wrap items-end gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        take.mutate();
      }}
    >
      <label className="text-xs text-muted">
        {texts.what}
        <select className="field mt-1 block !w-40" value={what} onChange={(event) => setWhat(event.target.value as What)}>
          {(Object.keys(LONGEST) as What[]).map((each) => (
            <option key={each} value={each}>
              {texts.kinds[each]}
            </option>
          ))}
        </select>
      </label>
      {longest > 0 && (
        <label className="text-xs text-muted">
          {texts.seconds}
          <input className="field mt-1 block !w-20" type="number" required min={1} max={longest} value={seconds || ''} onChange={(event) => setSeconds(Number(event.target.value))} />
        </label>
      )}
      <label className="text-xs text-muted">
        {texts.task}
        <input className="field mt-1 block !w-40" placeholder={texts.allThatRun} value={task} onChange={(event) => setTask(event.target.value)} />
      </label>
      <button type="submit" className="btn btn-main" disabled={!running || going || take.isPending}>
        {texts.takeAProfile}
      </button>
      {!running && <p className="w-full text-xs text-muted">{texts.profileTakenWhile}</p>}
      {(what === 'jax' || what === 'tensorflow') && <p className="w-full text-xs text-muted">{texts.programHasOpen}</p>}
      {what === 'torch' && !offered && <p className="w-full text-xs text-muted">{texts.pytorchTracesItself}</p>}
      {take.error && (
        <div className="w-full">
          <Fault error={take.error} />
        </div>
      )}
    </form>
  );
}
