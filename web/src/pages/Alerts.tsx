/** What fires now, what is silenced and by whom, what is about to fire, and what has just ended. */

import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import * as ask from '../api/monitoring';
import { me as askMe } from '../api/queries';
import type { Alert } from '../api/types';
import { AlertHistory } from '../components/AlertHistory';
import { AlertTable } from '../components/AlertTable';
import { CommandLine } from '../components/Copy';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { SearchField } from '../components/SearchField';
import { SilenceDialog } from '../components/SilenceDialog';
import { Silences } from '../components/Silences';
import { useTitle } from '../components/useTitle';
import { matches, parts } from '../lib/alerts';
import { useKeys } from '../lib/keys';
import { alerts as texts } from '../texts/english/alerts';
import { counted } from '../texts/fill';

const route = getRouteApi('/frame/alerts');

export function Alerts() {
  const { q = '' } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useQuery(ask.alerts);
  const admin = useQuery(askMe).data?.role === 'admin';
  const [silencing, setSilencing] = useState<{ alert: Alert | null } | null>(null);
  const { firing, silenced, pending, over } = parts((list.data?.items ?? []).filter((each) => matches(each, q)));
  const silence = admin ? (alert: Alert) => setSilencing({ alert }) : undefined;
  useTitle(firing.length > 0 ? counted(texts.titleFiring, firing.length) : texts.alerts);
  useKeys({ n: () => admin && setSilencing({ alert: null }) });
  return (
    <section className="pt-5">
      <h1 className="sr-only">{texts.alerts}</h1>
      <SearchField label={texts.searchAlertsName} hint={texts.searchNameSeverity} value={q} onChange={(next) => void navigate({ search: { q: next || undefined }, replace: true })} />
      {list.error && !list.data && <Fault error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && <Skeleton rows={5} height={30} />}
      {list.data && (
        <>
          <h2 className="heading mt-5">{texts.firing}</h2>
          {firing.length > 0 ? (
            <AlertTable label={texts.firing} alerts={firing} onSilence={silence} />
          ) : (
            <Empty title={q ? texts.noAlertFires : texts.nothingFires}>
              {!admin && texts.shownYours}
            </Empty>
          )}
          <Part title={texts.silenced} told={texts.silencedNote} alerts={silenced} />
          <Part title={texts.pending} told={texts.pendingNote} alerts={pending} onSilence={silence} />
          <Part title={texts.over} told={texts.overNote} alerts={over} when="over" />
          <AlertHistory />
        </>
      )}
      {admin && (
        <>
          <div className="mt-7 flex items-end gap-3 border-b border-line">
            <h2 className="heading grow !border-b-0">{texts.silences}</h2>
            <button type="button" className="btn mb-1.5 !h-7" onClick={() => setSilencing({ alert: null })}>
              {texts.newSilence}
            </button>
          </div>
          <Silences />
        </>
      )}
      <div className="flex justify-end pt-3">
        <CommandLine line="corral alerts" />
      </div>
      {silencing && <SilenceDialog alert={silencing.alert} onClose={() => setSilencing(null)} />}
    </section>
  );
}

interface PartProps {
  title: string;
  told: string;
  alerts: readonly Alert[];
  when?: 'since' | 'over';
  onSilence?: (alert: Alert) => void;
}

function Part({ title, told, alerts, when, onSilence }: PartProps) {
  if (alerts.length === 0) return null;
  return (
    <>
      <h2 className="heading mt-7">
        {title}
        <span className="text-xs font-normal text-muted">{told}</span>
      </h2>
      <AlertTable label={title} alerts={alerts} when={when} onSilence={onSilence} />
    </>
  );
}
