/** What benchmarks measured on nodes: who is below its like, a measurement over time, and two runs compared. */

import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import * as ask from '../api/benchmarks';
import type { BenchmarkMetric, BenchmarkRun } from '../api/types';
import { BenchmarkChart, BenchmarkLegend } from '../components/BenchmarkChart';
import { BenchmarkChanges, BenchmarkedNodes, BenchmarkStandingTable } from '../components/BenchmarkTables';
import { BenchmarkWays } from '../components/BenchmarkWays';
import { CommandLine } from '../components/Copy';
import { NodeTabs } from '../components/NodeTabs';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { useTitle } from '../components/useTitle';
import { historyLine, runWords } from '../lib/benchmarks';
import { benchmarks as texts } from '../texts/english/benchmarks';
import { fill, number } from '../texts/fill';

const route = getRouteApi('/frame/benchmarks');

export function Benchmarks() {
  const { node = '', metric = '' } = route.useSearch();
  const navigate = route.useNavigate();
  const overview = useQuery(ask.overview);
  const set = (change: { node?: string; metric?: string }) => void navigate({ search: (now) => ({ ...now, ...change }), replace: true });
  useTitle(texts.title);
  return (
    <section className="pt-3">
      <h1 className="sr-only">{texts.title}</h1>
      <NodeTabs />
      {overview.error && <Fault error={overview.error} retry={() => void overview.refetch()} />}
      {overview.isPending && !overview.error && <Skeleton rows={5} />}
      {overview.data && overview.data.nodes.length === 0 && (
        <Empty title={texts.empty} line="corral benchmark run">
          {texts.emptyNote}
        </Empty>
      )}
      {overview.data && overview.data.nodes.length > 0 && (
        <>
          <div className="pt-3">
            <BenchmarkedNodes nodes={overview.data.nodes} node={node} onNode={(next) => set({ node: next || undefined })} />
          </div>
          {node && <OfNode node={node} metric={metric} onMetric={(next) => set({ metric: next })} />}
          <OfMetric metrics={overview.data.metrics} metric={metric} node={node} set={set} />
          <Runs runs={overview.data.runs} />
        </>
      )}
      <div className="flex justify-end pt-3">
        <CommandLine line={historyLine(node, node && !metric ? '' : metric)} />
      </div>
    </section>
  );
}

function OfNode({ node, metric, onMetric }: { node: string; metric: string; onMetric: (metric: string) => void }) {
  const found = useQuery(ask.standing({ node }));
  const label = fill(texts.measurementsOf, { node });
  return (
    <section aria-label={label} className="pt-6">
      <h2 className="pb-1 font-medium break-all">{node}</h2>
      {found.error && <Fault error={found.error} retry={() => void found.refetch()} />}
      {found.data && <BenchmarkStandingTable label={label} by="metric" items={found.data.items} chosen={metric} onChoose={onMetric} />}
    </section>
  );
}

interface OfMetricProps {
  metrics: readonly BenchmarkMetric[];
  metric: string;
  node: string;
  set: (change: { node?: string; metric?: string }) => void;
}

function OfMetric({ metrics, metric: asked, node, set }: OfMetricProps) {
  const metric = asked || (metrics.find((each) => each.slow > 0) ?? metrics[0])?.metric || '';
  const history = useQuery(ask.history(metric, ''));
  const standing = useQuery(ask.standing({ metric }));
  return (
    <section aria-label={texts.history} className="pt-6">
      <h2 className="pb-2 font-medium">{texts.overTime}</h2>
      <select aria-label={texts.measurement} className="field !w-auto max-w-full" value={metric} onChange={(event) => set({ metric: event.target.value })}>
        {metrics.every((each) => each.metric !== metric) && <option value={metric}>{metric || texts.none}</option>}
        {metrics.map((each) => (
          <option key={each.metric} value={each.metric}>
            {each.slow > 0 ? fill(texts.metricBelow, { metric: each.metric, slow: number(each.slow) }) : each.metric}
          </option>
        ))}
      </select>
      {history.error && <Fault error={history.error} retry={() => void history.refetch()} />}
      {history.data && history.data.points.length > 0 && (
        <>
          <BenchmarkChart history={history.data} />
          <BenchmarkLegend />
        </>
      )}
      {standing.data && standing.data.items.length > 0 && (
        <div className="pt-4">
          <BenchmarkStandingTable label={fill(texts.nodesBy, { metric })} by="node" items={standing.data.items} chosen={node} onChoose={(next) => set({ node: next })} />
        </div>
      )}
    </section>
  );
}

function Runs({ runs }: { runs: readonly BenchmarkRun[] }) {
  const { before = runs[1]?.id ?? '', after = runs[0]?.id ?? '' } = route.useSearch();
  const navigate = route.useNavigate();
  const found = useQuery(ask.comparison(before, after));
  const set = (change: { before?: string; after?: string }) => void navigate({ search: (now) => ({ ...now, ...change }), replace: true });
  return (
    <section aria-label={texts.runs} className="pt-6">
      <h2 className="pb-2 font-medium">{texts.twoRuns}</h2>
      <div className="flex flex-wrap gap-2 pb-2">
        <RunChoice label={texts.runBefore} runs={runs} run={before} onChange={(next) => set({ before: next })} />
        <RunChoice label={texts.runAfter} runs={runs} run={after} onChange={(next) => set({ after: next })} />
      </div>
      {!before && <p className="text-sm text-muted">{texts.onlyOneRun}</p>}
      {found.error && <Fault error={found.error} retry={() => void found.refetch()} />}
      {found.data && <BenchmarkChanges found={found.data} />}
      {found.data?.ways.map((each) => (
        <BenchmarkWays key={`${each.benchmark} ${each.node} ${each.unit} ${each.names[0]}`} ways={each} />
      ))}
      {found.data && found.data.after.problems.length > 0 && (
        <ul aria-label={texts.problems} className="list-disc pt-3 pl-5 text-xs text-muted">
          {found.data.after.problems.map((problem) => (
            <li key={problem}>{problem}</li>
          ))}
        </ul>
      )}
    </section>
  );
}

function RunChoice({ label, runs, run, onChange }: { label: string; runs: readonly BenchmarkRun[]; run: string; onChange: (run: string) => void }) {
  return (
    <select aria-label={label} className="field !w-auto max-w-full" value={run} onChange={(event) => onChange(event.target.value)}>
      {runs.every((each) => each.id !== run) && <option value={run}>{run || texts.none}</option>}
      {runs.map((each) => (
        <option key={each.id} value={each.id}>
          {runWords(each)}
        </option>
      ))}
    </select>
  );
}
