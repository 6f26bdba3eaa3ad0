/** The last weeks of a queue: waits (P50 and P95), and what it used, borrowed and lent, each as a bar beside its figures. */

import { useQuery } from '@tanstack/react-query';
import * as overview from '../api/overview';
import type { QueueHistoryWeek } from '../api/types';
import { historyLine, scales, useWords, waitWords } from '../lib/queuehistory';
import { duration } from '../lib/time';
import { hours } from '../lib/usage';
import { wide } from '../lib/wide';
import { queues as texts } from '../texts/english/queues';
import { fill, number } from '../texts/fill';
import { CommandLine } from './Copy';
import { Fault, Skeleton } from './Notices';

const HEIGHT = 16;

export function QueueWeeks({ queue }: { queue: string }) {
  const list = useQuery(overview.queueHistory(queue));
  if (list.error && !list.data) return <Fault error={list.error} retry={() => void list.refetch()} />;
  if (!list.data) return <Skeleton rows={4} />;
  const { weeks, unknown } = list.data;
  const most = scales(weeks);
  return (
    <section aria-label={texts.byWeek} className="min-w-0 pt-6">
      <div {...wide} className="overflow-x-auto">
        <table className="grid-table" aria-label={texts.byWeek}>
          <thead>
            <tr>
              <th>{texts.week}</th>
              <th className="num max-md:hidden">{texts.started}</th>
              <th className="num">{texts.waitP50}</th>
              <th className="num">{texts.p95}</th>
              <th className="w-1/4 max-sm:hidden">{texts.waits}</th>
              <th className="num">{texts.deviceHours}</th>
              <th className="num max-sm:hidden">{texts.borrowed}</th>
              <th className="num max-sm:hidden">{texts.lent}</th>
              <th className="w-1/4 max-sm:hidden">{texts.use}</th>
            </tr>
          </thead>
          <tbody>
            {weeks.map((week) => (
              <Week key={week.week} week={week} most={most} />
            ))}
          </tbody>
        </table>
      </div>
      <ul aria-label={texts.whatBarsMean} className="flex flex-wrap gap-x-4 gap-y-1 pt-1.5 text-2xs text-muted max-sm:hidden">
        <Key fill="var(--accent)">{texts.waitP50Use}</Key>
        <Key fill="var(--line-strong)">{texts.waitUpP95}</Key>
        <Key fill="none">{texts.lentRow}</Key>
      </ul>
      <p className="max-w-[80ch] pt-1.5 text-xs text-muted">
        {fill(texts.weeksBeginMonday, { unknown: unknown.join(' ') })}
      </p>
      <div className="flex justify-end pt-1">
        <CommandLine line={historyLine(queue)} />
      </div>
    </section>
  );
}

function Week({ week, most }: { week: QueueHistoryWeek; most: { wait: number; use: number } }) {
  const { started, waitP50, waitP95, used, borrowed, lent } = week;
  const own = Math.max(0, used - (borrowed ?? 0));
  return (
    <tr data-week={week.week}>
      <td className="whitespace-nowrap">{week.week}</td>
      <td className="num max-md:hidden">{number(started)}</td>
      <td className="num whitespace-nowrap">{wait(waitP50)}</td>
      <td className="num whitespace-nowrap">{wait(waitP95)}</td>
      <td className="max-sm:hidden">
        <Bars words={`${week.week}: ${waitWords(week)}`} first={(waitP50 ?? 0) / most.wait} last={(waitP95 ?? 0) / most.wait} />
      </td>
      <td className="num">{hours(used)}</td>
      <td className="num max-sm:hidden">{borrowed === null ? none : hours(borrowed)}</td>
      <td className="num max-sm:hidden">{lent === null ? none : hours(lent)}</td>
      <td className="max-sm:hidden">
        <Bars words={`${week.week}: ${useWords(week)}`} first={own / most.use} last={used / most.use} outline={(lent ?? 0) / most.use} />
      </td>
    </tr>
  );
}

const none = <span className="text-faint">–</span>;
const wait = (seconds: number | null) => (seconds === null ? none : duration(Math.round(seconds)));
const percent = (part: number) => `${Math.min(100, 100 * part).toFixed(2)}%`;

/** One bar up to `first`, a paler one from there to `last`, and an outline below; all parts of the width. */
function Bars({ words, first, last, outline = 0 }: { words: string; first: number; last: number; outline?: number }) {
  return (
    <svg role="img" aria-label={words} width="100%" height={HEIGHT} className="block min-w-16 overflow-visible">
      <title>{words}</title>
      <rect x={0} y={2} width={percent(last)} height={8} fill="var(--line-strong)" />
      <rect x={0} y={2} width={percent(first)} height={8} fill="var(--accent)" />
      {outline > 0 && <rect x={0} y={12} width={percent(outline)} height={3} fill="none" stroke="var(--accent)" />}
    </svg>
  );
}

function Key({ fill, children }: { fill: string; children: string }) {
  return (
    <li className="flex items-center gap-1.5">
      <svg width={14} height={8} aria-hidden className="shrink-0">
        <rect x={0.5} y={0.5} width={13} height={7} fill={fill} stroke="var(--accent)" strokeWidth={fill === 'none' ? 1 : 0} />
      </svg>
      {children}
    </li>
  );
}
