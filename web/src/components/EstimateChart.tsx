/** By queue: the part of the intervals that held beside the aim, and their width beside the spread of the waits themselves. */

import type { QueueEstimates } from '../api/types';
import { AIM, bias, held, NEAR, reach, span } from '../lib/estimates';
import { estimates as texts } from '../texts/english/estimates';
import { fill } from '../texts/fill';

const HEIGHT = 18;
const part = (of: number) => `${(of * 100).toFixed(2)}%`;

export function EstimateChart({ queues }: { queues: readonly QueueEstimates[] }) {
  const widest = Math.max(0, ...queues.flatMap((each) => [each.width ?? 0, each.pastWidth ?? 0]));
  return (
    <ul aria-label={texts.chart} className="divide-y divide-line border-y border-line">
      {queues.map((each) => (
        <li key={each.queue} className="grid grid-cols-1 items-center gap-x-6 gap-y-1 py-2.5 sm:grid-cols-[9rem_1fr_1fr]">
          <span className="truncate text-sm" title={each.queue}>
            {each.queue}
          </span>
          <Coverage found={each} />
          <Width found={each} widest={widest} />
        </li>
      ))}
    </ul>
  );
}

/** A scale from 0 to 100 % with the aim in it, and a mark where the queue is. */
function Coverage({ found }: { found: QueueEstimates }) {
  const words = held(found);
  const good = found.coverage !== null && Math.abs(found.coverage - AIM) <= NEAR;
  return (
    <figure className="min-w-0">
      <svg role="img" aria-label={fill(texts.pictureOf, { queue: found.queue, words })} width="100%" height={HEIGHT} className="block overflow-visible">
        <title>{words}</title>
        <rect x={0} y={7} width="100%" height={4} fill="var(--line)" />
        <rect x={part(AIM - NEAR)} y={3} width={part(2 * NEAR)} height={12} fill="var(--accent-ground)" stroke="var(--accent)" strokeWidth={0.5} />
        {found.coverage !== null && (
          <svg aria-hidden x={part(found.coverage)} y={0} overflow="visible">
            {good ? <circle r={5} cy={9} fill="var(--accent)" /> : <path d="M-6 9l6-6 6 6-6 6z" fill="var(--fail)" />}
          </svg>
        )}
      </svg>
      <figcaption className="text-2xs text-muted">{words}</figcaption>
    </figure>
  );
}

/** How wide the intervals are, above the spread of the waits. */
function Width({ found, widest }: { found: QueueEstimates; widest: number }) {
  const words = fill(texts.widths, { width: span(found.width), spread: span(found.pastWidth), bias: bias(found.bias) });
  return (
    <figure className="min-w-0">
      <svg role="img" aria-label={fill(texts.pictureOf, { queue: found.queue, words })} width="100%" height={HEIGHT} className="block">
        <title>{words}</title>
        <rect x={0} y={2} width={part(reach(found.width, widest))} height={7} fill="var(--accent)" />
        <rect x={0} y={11} width={part(reach(found.pastWidth, widest))} height={5} fill="var(--line-strong)" />
      </svg>
      <figcaption className="text-2xs text-muted">{words}</figcaption>
    </figure>
  );
}

const KEYS = [
  ['aim', <rect key="a" x={0.5} y={1} width={15} height={12} fill="var(--accent-ground)" stroke="var(--accent)" strokeWidth={0.5} />],
  ['within', <circle key="b" cx={8} cy={7} r={5} fill="var(--accent)" />],
  ['outside', <path key="c" d="M2 7l6-6 6 6-6 6z" fill="var(--fail)" />],
  ['width', <rect key="d" y={3} width={16} height={7} fill="var(--accent)" />],
  ['waits', <rect key="e" y={4} width={16} height={5} fill="var(--line-strong)" />],
] as const;

export function EstimateLegend() {
  return (
    <ul aria-label={texts.chartShows} className="flex flex-wrap gap-x-5 gap-y-1 pt-3 text-2xs text-muted">
      {KEYS.map(([name, shape]) => (
        <li key={name} className="flex items-center gap-1.5">
          <svg width={16} height={14} aria-hidden className="shrink-0">
            {shape}
          </svg>
          {texts.legend[name]}
        </li>
      ))}
    </ul>
  );
}
