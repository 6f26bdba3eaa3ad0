/** The candidate that goes on beside the policy in force: how it stands, a button that stops it, and its last report. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { call } from '../api/client';
import * as overview from '../api/overview';
import type { RunningShadow as Shadow } from '../api/types';
import { runningInWords } from '../lib/shadow';
import { shadow as texts } from '../texts/english/shadow';
import { Fault } from './Notices';
import { ShadowAnswer } from './ShadowAnswer';

/** Begins one, and takes its state over. */
export function useBeginShadow(begun: () => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (request: unknown) => call<Shadow>('/running-shadow', { method: 'POST', json: request }),
    onSuccess: (shadow) => {
      queries.setQueryData(overview.runningShadow.queryKey, shadow);
      begun();
    },
  });
}

export function RunningShadow() {
  const { data: shadow, error } = useQuery(overview.runningShadow);
  if (error && !shadow) return <Fault error={error} />;
  if (!shadow) return null;
  return <Standing shadow={shadow} />;
}

function Standing({ shadow }: { shadow: Shadow }) {
  const queries = useQueryClient();
  const { data: report, error } = useQuery(overview.runningReport(shadow));
  const stop = useMutation({
    mutationFn: () => call<Shadow>('/running-shadow/stop', { method: 'POST' }),
    onSuccess: (stopped) => queries.setQueryData(overview.runningShadow.queryKey, stopped),
  });
  const failed = shadow.state === 'failed';
  return (
    <section aria-labelledby="running-shadow" className="space-y-4 pt-6">
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
        <div className="max-w-[70ch] min-w-0 space-y-1 text-sm break-words">
          <h2 id="running-shadow" className="label">
            {shadow.state === 'running' ? texts.goesOn : texts.wentOn}
          </h2>
          {runningInWords(shadow).map((each, at) => (
            <p key={at} className={failed && at === 1 ? 'text-fail' : ''}>
              {each}
            </p>
          ))}
        </div>
        {shadow.state === 'running' && (
          <button type="button" className="btn shrink-0" aria-disabled={stop.isPending} onClick={() => !stop.isPending && stop.mutate()}>
            {stop.isPending ? texts.stopping : texts.stop}
          </button>
        )}
      </div>
      {stop.error && <Fault error={stop.error} />}
      {error && <Fault error={error} />}
      {report && shadow.reportedAt !== null && <ShadowAnswer report={report} />}
    </section>
  );
}
