/** The health of one node: its state, score and reasons, what was seen of it, and what administrators do about it. */

import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { call } from '../api/client';
import * as ask from '../api/monitoring';
import { me as askMe } from '../api/queries';
import type { Health, HealthEntry } from '../api/types';
import { actsFor, adds, happened, healthLine, score, stateWords, toneOf, type Act } from '../lib/health';
import { shortNode } from '../lib/format';
import { nodes as texts } from '../texts/english/nodes';
import { fill } from '../texts/fill';
import { FormDialog, TextField } from './FormDialog';
import { Fault, Skeleton } from './Notices';
import { Ago } from './Time';

export function NodeHealth({ node, health }: { node: string; health: Health | undefined }) {
  const admin = useQuery(askMe).data?.role === 'admin';
  const [asking, setAsking] = useState<Act | null>(null);
  const state = health?.state ?? 'healthy';
  return (
    <section aria-label={fill(texts.healthOf, { node: shortNode(node) })} className="pb-3">
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
                {texts.itsValidationJob}
              </Link>
            </>
          )}
        </p>
        <div className="flex flex-wrap gap-2">
          {actsFor(state).map((act) => (
            <button key={act} type="button" className="btn !h-7" disabled={!admin} title={admin ? texts.acts[act].does : texts.administratorsChangeHealth} onClick={() => setAsking(act)}>
              {texts.acts[act].title}
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
  const devices = health.devices.filter((each) => each.score >= 0.05).map((each) => fill(texts.scoredDevice, { device: each.device, score: score(each.score) }));
  const scored = fill(devices.length > 0 ? texts.scoredDevices : texts.scored, { score: score(health.score), devices: devices.join(', ') });
  const state = health.by ? scored + fill(texts.changedBy, { by: health.by }) : scored;
  return health.why ? fill(texts.because, { state, why: health.why }) : state;
}

function History({ node }: { node: string }) {
  const list = useInfiniteQuery(ask.healthHistory(node));
  const entries = list.data?.pages.flatMap((page) => page.items) ?? [];
  if (list.error && !list.data) return <Fault error={list.error} retry={() => void list.refetch()} />;
  if (list.isPending) return <Skeleton rows={2} />;
  if (entries.length === 0) return <p className="text-xs text-muted">{texts.signTroubleWas}</p>;
  return (
    <>
      <table className="grid-table" aria-label={texts.historyHealth}>
        <thead>
          <tr>
            <th>{texts.when}</th>
            <th>{texts.what}</th>
            <th className="num max-sm:hidden">{texts.deviceColumn}</th>
            <th className="num max-sm:hidden">{texts.adds}</th>
            <th className="max-sm:hidden">{texts.by}</th>
            <th>{texts.why}</th>
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
          {texts.showEarlierEntries}
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
              {texts.itsJob}
            </Link>
          </>
        )}
        {entry.by && <div className="text-xs text-muted sm:hidden">{fill(texts.byRow, { by: entry.by })}</div>}
      </td>
    </tr>
  );
}

function Ask({ act, node, onClose }: { act: Act; node: string; onClose: () => void }) {
  const client = useQueryClient();
  const [why, setWhy] = useState('');
  const { title, does, hint } = texts.acts[act];
  const reason = why.trim();
  const change = useMutation({
    mutationFn: () => call(ask.healthPath(node), { method: 'POST', json: { act, why: reason } }),
    onSuccess: async () => {
      onClose();
      await client.invalidateQueries({ queryKey: ['cluster'] });
    },
  });
  return (
    <FormDialog title={fill(texts.actionOf, { action: title, name: shortNode(node) })} word={title} pending={change.isPending} ready={reason !== ''} error={change.error} line={healthLine(act, node, reason)} onSubmit={() => change.mutate()} onClose={onClose}>
      <p className="pb-4 text-sm text-muted">{does}</p>
      <TextField label={texts.why} first required max={500} hint={hint} value={why} onChange={setWhy} />
    </FormDialog>
  );
}
