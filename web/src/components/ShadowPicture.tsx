/** By queue: waits, devices in use and preemptions in force, beside those of the candidate. */

import type { ShadowReport } from '../api/types';
import { DRAWN, type Measure, part } from '../lib/shadow';
import { shadow as texts } from '../texts/english/shadow';
import { fill } from '../texts/fill';

const HEIGHT = 20;
const percent = (of: number) => `${(of * 100).toFixed(2)}%`;
const LEGEND = [
  ['inForce', 'var(--line-strong)'],
  ['candidate', 'var(--accent)'],
] as const;
type Queue = ShadowReport['total']['queues'][number];

export function ShadowPicture({ queues }: { queues: readonly Queue[] }) {
  if (queues.length === 0) return null;
  return (
    <div>
      <ul aria-label={texts.chart} className="divide-y divide-line border-y border-line">
        {queues.map((each) => (
          <li key={each.queue} className="grid grid-cols-1 items-center gap-x-6 gap-y-1.5 py-2.5 sm:grid-cols-[8rem_1fr_1fr_1fr]">
            <span className="truncate text-sm" title={each.queue}>
              {each.queue}
            </span>
            {DRAWN.map((measure) => (
              <Bars key={measure.name} queue={each} measure={measure} most={most(queues, measure)} />
            ))}
          </li>
        ))}
      </ul>
      <ul aria-label={texts.chartShows} className="flex flex-wrap gap-x-5 gap-y-1 pt-2 text-2xs text-muted">
        {LEGEND.map(([name, colour]) => (
          <li key={name} className="flex items-center gap-1.5">
            <svg width={16} height={8} aria-hidden className="shrink-0">
              <rect width={16} height={8} fill={colour} />
            </svg>
            {texts.legend[name]}
          </li>
        ))}
      </ul>
    </div>
  );
}

function most(queues: readonly Queue[], { value }: Measure): number {
  return Math.max(0, ...queues.flatMap((each) => [value(each.inForce) ?? 0, value(each.candidate) ?? 0]));
}

function Bars({ queue, measure, most }: { queue: Queue; measure: Measure; most: number }) {
  const { name, value, say } = measure;
  const [before, after] = [say(queue.inForce), say(queue.candidate)];
  const words = fill(texts.bars, { measure: texts.figures[name], inForce: before, candidate: after });
  return (
    <figure className="min-w-0">
      <svg role="img" aria-label={fill(texts.pictureOf, { queue: queue.queue, words })} width="100%" height={HEIGHT} className="block">
        <title>{words}</title>
        <rect x={0} y={0} width={1} height={HEIGHT} fill="var(--line)" />
        <rect x={0} y={2} width={percent(part(value(queue.inForce), most))} height={7} fill="var(--line-strong)" />
        <rect x={0} y={11} width={percent(part(value(queue.candidate), most))} height={7} fill="var(--accent)" />
      </svg>
      <figcaption className="text-2xs text-muted">
        {texts.figures[name]} {before === after ? before : `${before} → ${after}`}
      </figcaption>
    </figure>
  );
}
