/** What the jobs of a user, a queue or everybody asked for and used, with the requests that would have done. */

import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useMemo } from 'react';
import * as ask from '../api/monitoring';
import { me as askMe } from '../api/queries';
import { CommandLine } from '../components/Copy';
import { EfficiencyByUser, EfficiencyTable } from '../components/EfficiencyTable';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { PeriodChoice } from '../components/PeriodChoice';
import { QueueChoice } from '../components/QueueChoice';
import { UsageTabs } from '../components/UsageTabs';
import { UserChoice } from '../components/UserChoice';
import { useTitle } from '../components/useTitle';
import { serverToday } from '../lib/clock';
import { efficiencyLine, sumWords } from '../lib/efficiency';
import { asked, period } from '../lib/usage';
import { efficiency as texts } from '../texts/english/efficiency';
import { fill } from '../texts/fill';

const route = getRouteApi('/frame/efficiency');
const USUAL = '7';

export function Efficiency() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { data: me } = useQuery(askMe);
  const { queue = '', user = '' } = search;
  const today = serverToday();
  const chosen = useMemo(() => period(search, Date.parse(today), USUAL), [search, today]);
  const report = useQuery(ask.efficiency({ ...asked(chosen), user: user || undefined, queue: queue || undefined }));
  const set = (change: Partial<typeof search>) => void navigate({ search: (now) => ({ ...now, ...change }), replace: true });
  const whose = user ? fill(texts.jobsOfUser, { user }) : queue ? fill(texts.jobsInQueue, { queue }) : me?.role === 'admin' ? texts.jobs : texts.yourJobs;
  useTitle(user ? fill(texts.titleOfUser, { user }) : texts.title);
  return (
    <section className="pt-3">
      <h1 className="sr-only">{texts.title}</h1>
      <UsageTabs />
      <div className="flex flex-wrap items-end gap-x-3 gap-y-2 pt-3" role="search">
        <PeriodChoice search={search} chosen={chosen} usual={USUAL} onChange={set} />
        <span className="grow" />
        <QueueChoice queue={queue} onChange={(next) => set({ queue: next })} />
        <UserChoice user={user} onChange={(next) => set({ user: next })} />
      </div>
      {report.error && <Fault error={report.error} retry={() => void report.refetch()} />}
      {report.isPending && <Skeleton rows={5} height={30} />}
      {report.data && report.data.items.length === 0 && (
        <Empty title={texts.empty}>{texts.emptyNote}</Empty>
      )}
      {report.data && report.data.items.length > 0 && (
        <>
          <ul aria-label={texts.summary} className="max-w-[80ch] space-y-1 pt-5 text-sm [&_li:first-child]:text-base [&_li:first-child]:font-medium">
            {sumWords(report.data, whose).map((sentence) => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
          {report.data.users.length > 1 && (
            <div className="pt-5">
              <EfficiencyByUser users={report.data.users} onUser={(next) => set({ user: next })} />
            </div>
          )}
          <div className="pt-5">
            <EfficiencyTable jobs={report.data.items} />
          </div>
        </>
      )}
      <div className="flex justify-end pt-3">
        <CommandLine line={efficiencyLine(chosen, user, queue)} />
      </div>
    </section>
  );
}
