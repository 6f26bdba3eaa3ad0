/** Jobs that leave their devices idle: what they waste, what is done about it and when, and what a dry run would have done. */

import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import * as ask from '../api/monitoring';
import { me as askMe } from '../api/queries';
import type { IdleJob } from '../api/types';
import { CommandLine } from '../components/Copy';
import { ExtendDialog } from '../components/ExtendDialog';
import { IdleTable } from '../components/IdleTable';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { SearchField } from '../components/SearchField';
import { UsageTabs } from '../components/UsageTabs';
import { useTitle } from '../components/useTitle';
import { matches, parts } from '../lib/idle';
import { idle as texts } from '../texts/english/idle';
import { filled } from '../texts/fill';

const route = getRouteApi('/frame/idle');

/** The part of a document that sets it. */
const PART = 'idle';

export function Idle() {
  const { q = '' } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useQuery(ask.idleJobs);
  const { data: me } = useQuery(askMe);
  const [extending, setExtending] = useState<IdleJob | null>(null);
  const { now, before, dry } = parts((list.data?.items ?? []).filter((each) => matches(each, q)));
  useTitle(texts.idleDevices);
  return (
    <section className="pt-3">
      <h1 className="sr-only">{texts.idleDevices}</h1>
      <UsageTabs />
      <div className="flex flex-wrap items-center gap-3 py-2.5">
        <SearchField label={texts.searchJobsName} hint={texts.searchNameUser} value={q} onChange={(next) => void navigate({ search: { q: next || undefined }, replace: true })} />
        <p className="text-xs text-muted">
          {me?.role === 'admin' ? texts.ofThisWeek : texts.ofYours}
        </p>
      </div>
      {list.error && !list.data && <Fault error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && <Skeleton rows={5} height={30} />}
      {list.data && now.length + before.length + dry.length === 0 && (
        <Empty title={q ? texts.noSuchJob : texts.noJobLeaves}>
          {filled(texts.configured, { what: <span className="font-mono text-xs">{PART}</span> })}
        </Empty>
      )}
      <Part title={texts.idleNow} told={texts.devicesUsedAgain} jobs={now} me={me} onExtend={setExtending} />
      <Part title={texts.dryRuns} told={texts.reportedAdministratorsNothing} jobs={dry} me={me} onExtend={setExtending} />
      <Part title={texts.over} told={texts.devicesUseAgain} jobs={before} me={me} onExtend={setExtending} />
      <div className="flex justify-end pt-3">
        <CommandLine line="corral idle" />
      </div>
      {extending && <ExtendDialog job={extending} onClose={() => setExtending(null)} />}
    </section>
  );
}

interface PartProps extends Omit<Parameters<typeof IdleTable>[0], 'label'> {
  title: string;
  told: string;
}

function Part({ title, told, ...table }: PartProps) {
  if (table.jobs.length === 0) return null;
  return (
    <>
      <h2 className="heading mt-5">
        <span className="whitespace-nowrap">{title}</span>
        <span className="text-xs font-normal text-muted">{told}</span>
      </h2>
      <IdleTable label={title} {...table} />
    </>
  );
}
