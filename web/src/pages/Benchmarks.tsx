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

const route = getRouteApi('/frame/benchmarks');

export function Benchmarks() {
  const { node = '', metric = '' } = route.useSearch();
  const navigate = route.useNavigate();
  const overview = useQuery(ask.overview);
  const set = (change: { node?: string; metric?: string }) => void navigate({ search: (now) => ({ ...now, ...change }), replace: true });
  useTitle('Benchmarks');
  return (
    <section className="pt-3">
      <h1 className="sr-only">Benchmarks</h1>
      <NodeTabs />
      {overview.error && <Fault error={overview.error} retry={() => void overview.refetch()} />}
      {overview.isPending && !overview.error && <Skeleton rows={5} />}
      {overview.data && overview.data.nodes.length === 0 && (
        <Empty title="No results are kept" line="corral benchmark run">
          What benchmarks measure on nodes is kept here and compared with the nodes of the same kind.
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
  return (
    <section aria-label={`Measurements of ${node}`} className="pt-6">
      <h2 className="pb-1 font-medium break-all">{node}</h2>
      {found.error && <Fault error={found.error} retry={() => void found.refetch()} />}
      {found.data && <BenchmarkStandingTable label={`Measurements of ${node}`} by="metric" items={found.data.items} chosen={metric} onChoose={onMetric} />}
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
    <section aria-label="History" className="pt-6">
      <h2 className="pb-2 font-medium">Over time</h2>
      <select aria-label="Measurement" className="field !w-auto max-w-full" value={metric} onChange={(event) => set({ metric: event.target.value })}>
        {metrics.every((each) => each.metric !== metric) && <option value={metric}>{metric || 'none'}</option>}
        {metrics.map((each) => (
          <option key={each.metric} value={each.metric}>
            {each.metric}
            {each.slow > 0 && ` (${each.slow} below)`}
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
          <BenchmarkStandingTable label={`Nodes by ${metric}`} by="node" items={standing.data.items} chosen={node} onChoose={(next) => set({ node: next })} />
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
    <section aria-label="Runs" className="pt-6">
      <h2 className="pb-2 font-medium">Two runs</h2>
      <div className="flex flex-wrap gap-2 pb-2">
        <RunChoice label="Run before" runs={runs} run={before} onChange={(next) => set({ before: next })} />
        <RunChoice label="Run after" runs={runs} run={after} onChange={(next) => set({ after: next })} />
      </div>
      {!before && <p className="text-sm text-muted">There is only one run so far.</p>}
      {found.error && <Fault error={found.error} retry={() => void found.refetch()} />}
      {found.data && <BenchmarkChanges found={found.data} />}
      {found.data?.ways.map((each) => (
        <BenchmarkWays key={`${each.benchmark} ${each.node} ${each.unit} ${each.names[0]}`} ways={each} />
      ))}
      {found.data && found.data.after.problems.length > 0 && (
        <ul aria-label="Problems of the run" className="list-disc pt-3 pl-5 text-xs text-muted">
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
      {runs.every((each) => each.id !== run) && <option value={run}>{run || 'none'}</option>}
      {runs.map((each) => (
        <option key={each.id} value={each.id}>
          {runWords(each)}
        </option>
      ))}
    </select>
  );
}
