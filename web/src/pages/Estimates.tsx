/** How good the estimates of starts were, by queue: how many intervals held, how wide they were, bias and error. */

import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import * as overview from '../api/overview';
import type { QueueEstimates } from '../api/types';
import { CommandLine } from '../components/Copy';
import { EstimateChart, EstimateLegend } from '../components/EstimateChart';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { QueueChoice } from '../components/QueueChoice';
import { QueueTabs } from '../components/QueueTabs';
import { useTitle } from '../components/useTitle';
import { bias, DAYS, estimatesLine, held, span } from '../lib/estimates';
import { wide } from '../lib/wide';
import { estimates as texts } from '../texts/english/estimates';
import { counted, number } from '../texts/fill';

const route = getRouteApi('/frame/estimates');
const COLUMNS = ['queue', 'given', 'held', 'width', 'waitsSpread', 'starts', 'error', 'stillWait'] as const;

export function Estimates() {
  const { queue = '', days = DAYS[0] } = route.useSearch();
  const navigate = route.useNavigate();
  const report = useQuery(overview.estimates(queue, days));
  const queues = report.data?.queues ?? [];
  useTitle(texts.title);
  return (
    <section className="pt-3">
      <h1 className="sr-only">{texts.title}</h1>
      <QueueTabs queue={queue} />
      <div className="flex flex-wrap items-center gap-3 py-2.5">
        <QueueChoice queue={queue} onChange={(next) => void navigate({ search: (now) => ({ ...now, queue: next || undefined }), replace: true })} />
        <div role="group" aria-label={texts.lookBack} className="flex gap-1">
          {DAYS.map((each) => (
            <button
              key={each}
              type="button"
              className="btn aria-pressed:border-accent aria-pressed:text-accent"
              aria-pressed={each === days}
              onClick={() => void navigate({ search: (now) => ({ ...now, days: each === DAYS[0] ? undefined : each }), replace: true })}
            >
              {counted(texts.days, Number(each))}
            </button>
          ))}
        </div>
      </div>
      {report.error && !report.data && <Fault error={report.error} retry={() => void report.refetch()} />}
      {report.isPending && !report.error && <Skeleton rows={4} />}
      {report.data && queues.length === 0 && (
        <Empty title={texts.empty} line="corral what-if --seeds 5">
          {texts.emptyNote}
        </Empty>
      )}
      {queues.length > 0 && (
        <>
          <EstimateChart queues={queues} />
          <EstimateLegend />
          <Figures queues={queues.length > 1 && report.data ? [...queues, report.data.total] : queues} />
        </>
      )}
      <div className="flex justify-end pt-3">
        <CommandLine line={estimatesLine(queue, days)} />
      </div>
    </section>
  );
}

function Figures({ queues }: { queues: readonly QueueEstimates[] }) {
  return (
    <div {...wide} className="overflow-x-auto pt-5">
      <table aria-label={texts.byQueue} className="w-full text-sm">
        <thead>
          <tr className="border-b border-line-strong text-left text-xs text-muted">
            {COLUMNS.map((column) => (
              <th key={column} scope="col" className="px-2 py-1.5 font-normal whitespace-nowrap">
                {texts.columns[column]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {queues.map((each) => (
            <tr key={each.queue} className="border-b border-line">
              <th scope="row" className="px-2 py-1.5 text-left font-normal">
                {each.queue || texts.all}
              </th>
              {[number(each.given), held(each), span(each.width), span(each.pastWidth), bias(each.bias), span(each.error), number(each.waiting)].map((text, at) => (
                <td key={at} className="px-2 py-1.5 whitespace-nowrap">
                  {text}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
