/** One queue's share as a bar: what it uses of its own, what it borrows, what of its own is idle or lent, and its bounds. */

import type { QueueStanding } from '../api/types';
import { bar, told } from '../lib/shares';
import { shares as texts } from '../texts/english/shares';

const HEIGHT = 16;

export function ShareBar({ queue, resource, scale }: { queue: QueueStanding; resource: string; scale: number }) {
  const parts = bar(queue, resource, scale);
  const at = (part: number) => `${(part * 100).toFixed(2)}%`;
  const words = told(queue, resource);
  if (scale <= 0) return <span className="text-muted">–</span>;
  return (
    <svg role="img" aria-label={words} width="100%" height={HEIGHT} className="block min-w-24 overflow-visible" data-bar={queue.name}>
      <title>{words}</title>
      <Pattern />
      {parts.idle > 0 && (
        <rect x={at(parts.own + parts.borrowed)} y={3} width={at(parts.idle)} height={HEIGHT - 7} fill="none" stroke="var(--line-strong)" strokeDasharray="3 2" />
      )}
      {parts.own > 0 && <rect x={0} y={2.5} width={at(parts.own)} height={HEIGHT - 6} fill="var(--accent)" />}
      {parts.borrowed > 0 && (
        <rect x={at(parts.own)} y={3} width={at(parts.borrowed)} height={HEIGHT - 7} fill="url(#borrowed)" stroke="var(--wait)" />
      )}
      {parts.guaranteed > 0 && <rect x={0} y={HEIGHT - 2} width={at(parts.guaranteed)} height={2} fill="var(--text)" />}
      {parts.fair !== null && (
        <svg aria-hidden x={at(parts.fair)} y={0} overflow="visible">
          <path d="M-3.5 0h7L0 4z" fill="var(--muted)" />
        </svg>
      )}
      {parts.limit !== null && (
        <svg aria-hidden x={at(parts.limit)} y={0} overflow="visible">
          <path d={`M-1 0v${HEIGHT}`} stroke="var(--fail)" strokeWidth={2} />
        </svg>
      )}
    </svg>
  );
}

function Pattern() {
  return (
    <defs>
      <pattern id="borrowed" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect width="5" height="5" fill="var(--wait-ground)" />
        <path d="M1 0v5" stroke="var(--wait)" strokeWidth="2" />
      </pattern>
    </defs>
  );
}

const KEYS = [
  ['own', <rect key="a" y={2.5} width={16} height={9} fill="var(--accent)" />],
  ['borrowed', <rect key="b" x={0.5} y={3} width={15} height={8} fill="url(#borrowed)" stroke="var(--wait)" />],
  ['idle', <rect key="c" x={0.5} y={3} width={15} height={8} fill="none" stroke="var(--line-strong)" strokeDasharray="3 2" />],
  ['guaranteed', <rect key="d" y={11} width={16} height={2} fill="var(--text)" />],
  ['fair', <path key="e" d="M4.5 3h7L8 8z" fill="var(--muted)" />],
  ['limit', <path key="f" d="M8 0v14" stroke="var(--fail)" strokeWidth={2} />],
] as const;

export function ShareLegend() {
  return (
    <ul aria-label={texts.barsShow} className="flex flex-wrap gap-x-5 gap-y-1 pt-3 pl-2.5 text-2xs text-muted">
      {KEYS.map(([word, shape]) => (
        <li key={word} className="flex items-center gap-1.5">
          <svg width={16} height={14} aria-hidden>
            <Pattern />
            {shape}
          </svg>
          {texts.legend[word]}
        </li>
      ))}
    </ul>
  );
}
