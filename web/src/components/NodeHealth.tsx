/** The health of one node: its state, score and reasons, what was seen of it, and what administrators do about it. */

import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { call } from '../api/client';
import * as ask from '../api/monitoring';
import { me as askMe } from '../api/queries';
import type { Health, HealthEntry } from '../api/types';
import { ACT_WORDS, actsFor, adds, happened, healthLine, score, stateWords, toneOf, type Act } from '../lib/health';
import { shortNode } from '../lib/format';
import { FormDialog, TextField } from './FormDialog';
import { Fault, Skeleton } from './Notices';
import { Ago } from './Time';

export function NodeHealth({ node, health }: { node: string; health: Health | undefined }) {
  const admin = useQuery(askMe).data?.role === 'admin';
  const [asking, setAsking] = useState<Act | null>(null);
  const state = health?.state ?? 'healthy';
  return (
    <section aria-label={`Health of ${shortNode(node)}`} className="pb-3">
      <div className="flex flex-wrap items-center justify-between gap-x-3 gap-y-2 py-1">
        <p className="min-w-0 text-sm [overflow-wrap:anywhere]">
          <span className={toneOf(state)}>{stateWords(state)}</span>
          {health && <span className="text-muted">{told(health)}</span>}
          {health?.since && (
            <span className="text-muted">
              , <Ago at={health.since} />
            </span>
          )}
          {health?.job && state === 'validating' && (
            <>
              {' '}
              <Link to="/jobs/$ref" params={{ ref: health.job }} className="link">
                its validation job
              </Link>
            </>
          )}
        </p>
        <div className="flex flex-wrap gap-2">
          {actsFor(state).map((act) => (
            <button key={act} type="button" className="btn !h-7" disabled={!admin} title={admin ? ACT_WORDS[act].does : 'Only administrators change the health of nodes'} onClick={() => setAsking(act)}>
              {ACT_WORDS[act].title}
            </button>
          ))}
        </div>
      </div>
      <History node={node} />
      {asking && <Ask act={asking} node={node} onClose={() => setAsking(null)} />}
    </section>
  );
}

/** Score, devices, author and reason of a state. */
function told(health: Health): string {
  const devices = health.devices.filter((each) => each.score >= 0.05).map((each) => `device ${each.device} ${score(each.score)}`);
  const why = health.why ? `: ${health.why}` : '';
  return `, score ${score(health.score)}${devices.length > 0 ? ` (${devices.join(', ')})` : ''}${health.by ? `, by ${health.by}${why}` : why}`;
}

function History({ node }: { node: string }) {
  const list = useInfiniteQuery(ask.healthHistory(node));
  const entries = list.data?.pages.flatMap((page) => page.items) ?? [];
  if (list.error && !list.data) return <Fault error={list.error} retry={() => void list.refetch()} />;
  if (list.isPending) return <Skeleton rows={2} />;
  if (entries.length === 0) return <p className="text-xs text-muted">No sign of trouble was seen here.</p>;
  return (
    <>
      <table className="grid-table" aria-label="History of its health">
        <thead>
          <tr>
            <th>When</th>
            <th>What</th>
            <th className="num max-sm:hidden">Device</th>
            <th className="num max-sm:hidden">Adds</th>
            <th className="max-sm:hidden">By</th>
            <th>Why</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry, at) => (
            <Entry key={`${entry.at} ${at}`} entry={entry} />
          ))}
        </tbody>
      </table>
      {list.hasNextPage && (
        <button type="button" className="btn mt-2 !h-7" onClick={() => void list.fetchNextPage()} disabled={list.isFetchingNextPage}>
          Show earlier entries
        </button>
      )}
    </>
  );
}

function Entry({ entry }: { entry: HealthEntry }) {
  return (
    <tr>
      <td className="text-muted">
        <Ago at={entry.at} />
      </td>
      <td className={entry.what === 'moved' ? 'font-medium' : ''}>{happened(entry)}</td>
      <td className="num text-muted max-sm:hidden">{entry.device ?? ''}</td>
      <td className="num text-muted max-sm:hidden">{adds(entry)}</td>
      <td className="text-muted max-sm:hidden">{entry.by}</td>
      <td className="[overflow-wrap:anywhere]">
        {entry.reason}
        {entry.job && (
          <>
            {' '}
            <Link to="/jobs/$ref" params={{ ref: entry.job }} className="link whitespace-nowrap">
              its job
            </Link>
          </>
        )}
        {entry.by && <div className="text-xs text-muted sm:hidden">by {entry.by}</div>}
      </td>
    </tr>
  );
}

function Ask({ act, node, onClose }: { act: Act; node: string; onClose: () => void }) {
  const client = useQueryClient();
  const [why, setWhy] = useState('');
  const { title, does, hint } = ACT_WORDS[act];
  const reason = why.trim();
  const change = useMutation({
    mutationFn: () => call(ask.healthPath(node), { method: 'POST', json: { act, why: reason } }),
    onSuccess: async () => {
      onClose();
      await client.invalidateQueries({ queryKey: ['cluster'] });
    },
  });
  return (
    <FormDialog title={`${title} ${shortNode(node)}?`} word={title} pending={change.isPending} ready={reason !== ''} error={change.error} line={healthLine(act, node, reason)} onSubmit={() => change.mutate()} onClose={onClose}>
      <p className="pb-4 text-sm text-muted">{does}</p>
      <TextField label="Why" first required max={500} hint={hint} value={why} onChange={setWhy} />
    </FormDialog>
  );
}
