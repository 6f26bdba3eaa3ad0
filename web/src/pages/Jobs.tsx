/** The jobs: the cluster as it is held now, why the next job waits, and the jobs. */

import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import * as overview from '../api/overview';
import * as ask from '../api/queries';
import type { JobFilter } from '../api/queries';
import { ENDED, type JobSummary } from '../api/types';
import { ClusterMap } from '../components/ClusterMap';
import { CommandLine } from '../components/Copy';
import { Filters } from '../components/Filters';
import { JobTable } from '../components/JobTable';
import { ColumnChoice, Export, useHidden } from '../components/ListSetup';
import { NextInLine } from '../components/NextInLine';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { StopMany } from '../components/StopMany';
import { TagMany } from '../components/TagMany';
import { TensorBoardButton } from '../components/TensorBoardButton';
import { Totals } from '../components/Totals';
import { useTitle } from '../components/useTitle';
import { nodesOfJobs, racks } from '../lib/cells';
import { listLine } from '../lib/cli';
import { marks } from '../lib/marks';
import { list as texts } from '../texts/english/list';
import { counted, fill } from '../texts/fill';

const route = getRouteApi('/frame/');

export function Jobs() {
  const [lit, setLit] = useState('');
  useTitle(texts.jobs);
  return (
    <>
      <h1 className="sr-only">{texts.clusterJobs}</h1>
      <ClusterPart lit={lit} onLight={setLit} />
      <JobsPart onLight={setLit} />
    </>
  );
}

function ClusterPart({ lit, onLight }: { lit: string; onLight: (job: string) => void }) {
  const cluster = useQuery(ask.cluster);
  const top = useQuery(ask.top);
  const waiting = useQuery(ask.waitingJobs);
  const line = useInfiniteQuery(overview.line());
  const owners = useQuery(overview.cells);
  const { job: selected } = route.useSearch();
  const map = useMemo(() => (cluster.data ? racks(cluster.data) : []), [cluster.data]);
  const marked = useMemo(() => marks(owners.data?.cell), [owners.data]);
  if (cluster.error && !cluster.data) return <Fault error={cluster.error} retry={() => void cluster.refetch()} />;
  return (
    <section aria-label={texts.cluster} className="pt-5">
      <h2 className="sr-only">{texts.cluster}</h2>
      <div className="min-h-[54px]">{top.data ? <Totals top={top.data} /> : <Skeleton rows={2} />}</div>
      <div className="grid grid-cols-[minmax(0,1fr)] gap-x-12 gap-y-6 pt-5 pb-6 min-[1080px]:grid-cols-[minmax(0,max-content)_minmax(22rem,1fr)]">
        {!cluster.data && <Skeleton rows={4} height={38} />}
        {cluster.data && map.length > 0 && <ClusterMap racks={map} marks={marked} lit={lit || selected || ''} onLight={onLight} />}
        {cluster.data && map.length === 0 && (
          <Empty title={texts.noMachineKnown} line="corral doctor">
            {texts.noNode}
          </Empty>
        )}
        <div className="min-w-0 min-[1080px]:border-l min-[1080px]:border-line min-[1080px]:pl-6">
          {waiting.data ? <NextInLine jobs={waiting.data.items} more={waiting.data.next !== null} line={line.data?.pages[0]?.items} /> : <Skeleton rows={3} />}
        </div>
      </div>
    </section>
  );
}

function JobsPart({ onLight }: { onLight: (job: string) => void }) {
  const { job: selected = '', ...filter } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useInfiniteQuery(ask.jobs(filter));
  const { data: tree } = useQuery(ask.cluster);
  const where = useMemo(() => nodesOfJobs(tree ? racks(tree) : []), [tree]);
  const change = (next: JobFilter) => void navigate({ search: next, replace: true });
  const rows = useMemo(() => list.data?.pages.flatMap((page) => page.items) ?? [], [list.data]);
  const [hidden, toggle] = useHidden();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  // As they were when the question was opened: stopped jobs may leave the list below it.
  const [stopping, setStopping] = useState<readonly JobSummary[]>([]);
  const [tagging, setTagging] = useState<readonly JobSummary[]>([]);
  const picked = rows.filter((row) => chosen.has(row.id));
  const choose = (ids: readonly string[], yes: boolean) =>
    setChosen((before) => {
      const next = new Set(before);
      for (const id of ids) if (yes) next.add(id); else next.delete(id);
      return next;
    });
  return (
    <section aria-label={texts.jobs} className="border-t border-line-strong">
      <Filters filter={filter} onChange={change} />
      {picked.length > 0 && <Chosen jobs={picked} onStop={setStopping} onTag={setTagging} onNone={() => setChosen(new Set())} />}
      {stopping.length > 0 && (
        <StopMany
          jobs={stopping}
          onClose={() => setStopping([])}
          onDone={() => {
            setStopping([]);
            setChosen(new Set());
          }}
        />
      )}
      {tagging.length > 0 && <TagMany jobs={tagging} onClose={() => setTagging([])} onDone={() => setTagging([])} />}
      {list.error && <Fault error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && !list.error && <Skeleton rows={12} />}
      {list.data && rows.length > 0 && (
        <JobTable
          jobs={rows}
          scope={list.isPlaceholderData ? '' : JSON.stringify(filter)}
          selected={selected}
          onLight={onLight}
          where={where}
          hidden={hidden}
          group={filter.group ?? ''}
          chosen={chosen}
          onChoose={choose}
          onSelect={(job) => void navigate({ search: { ...filter, job: job || undefined }, replace: true })}
        />
      )}
      {list.data && rows.length === 0 && <NoJobs filter={filter} onClear={() => change({})} />}
      <div className="flex flex-wrap items-center justify-between gap-2 pt-3">
        {list.hasNextPage ? (
          <button type="button" className="btn" disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            {list.isFetchingNextPage ? texts.loadingOlderJobs : texts.showOlderJobs}
          </button>
        ) : (
          <span className="pl-2.5 text-xs text-muted">{rows.length > 0 && texts.theseAreAll}</span>
        )}
        <span className="flex flex-wrap items-center gap-2">
          <CommandLine line={listLine(filter)} />
          <ColumnChoice hidden={hidden} onToggle={toggle} />
          <Export filter={filter} />
        </span>
      </div>
    </section>
  );
}

/** What can be done with the jobs that were chosen. */
interface ChosenProps {
  jobs: readonly JobSummary[];
  onStop: (jobs: readonly JobSummary[]) => void;
  onTag: (jobs: readonly JobSummary[]) => void;
  onNone: () => void;
}

function Chosen({ jobs, onStop, onTag, onNone }: ChosenProps) {
  const live = jobs.filter(({ state }) => !ENDED.has(state) && state !== 'stopping');
  return (
    <div role="group" aria-label={texts.chosenJobs} className="sticky top-12 z-10 flex flex-wrap items-center gap-x-3 gap-y-1.5 border-y border-accent bg-accent-ground px-2.5 py-1.5 text-sm">
      <span role="status">{counted(texts.chosen, jobs.length)}</span>
      <button type="button" className="btn btn-grave !h-7" disabled={live.length === 0} title={live.length === 0 ? texts.allOver : undefined} onClick={() => onStop(live)}>
        {fill(texts.stop, { count: live.length })}
      </button>
      <TensorBoardButton jobs={jobs} className="!h-7" />
      <button type="button" className="btn !h-7" onClick={() => onTag(jobs)}>
        {fill(texts.tag, { count: jobs.length })}
      </button>
      <button type="button" className="btn-bare" onClick={onNone}>
        {texts.chooseNone}
      </button>
    </div>
  );
}

function NoJobs({ filter, onClear }: { filter: JobFilter; onClear: () => void }) {
  const filtered = Object.values(filter).some(Boolean);
  if (!filtered)
    return (
      <Empty title={texts.noJobSubmitted} line="corral run -- python -c 'print(6 * 7)'">
        {texts.runOne}
      </Empty>
    );
  return (
    <Empty title={texts.noJobMatches}>
      {texts.leftOut}{' '}
      <button type="button" className="link" onClick={onClear}>
        {texts.showAllJobs}
      </button>
    </Empty>
  );
}
