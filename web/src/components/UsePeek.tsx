/** How many devices of a node were held in the last hours, as a small line under the pointer and while the focus is within. */

import { useQuery } from '@tanstack/react-query';
import { useId, useRef, useState, type ReactNode } from 'react';
import * as overview from '../api/overview';
import { held, heldWords, stepLine } from '../lib/held';
import { shortNode } from '../lib/format';

export const PEEKED_HOURS = 6;
/** Milliseconds that the pointer rests before the line is fetched, so that passing over the list asks nothing. */
const REST = 150;
const WIDTH = 216;
const HEIGHT = 36;

export function UsePeek({ node, devices, children }: { node: string; devices: number; children: ReactNode }) {
  const [shown, setShown] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const id = useId();
  const hide = () => {
    clearTimeout(timer.current);
    setShown(false);
  };
  if (devices === 0) return children;
  return (
    <div
      className="relative"
      aria-describedby={shown ? id : undefined}
      onMouseEnter={() => {
        clearTimeout(timer.current);
        timer.current = setTimeout(() => setShown(true), REST);
      }}
      onMouseLeave={hide}
      onFocus={() => setShown(true)}
      onBlur={hide}
      onKeyDown={(event) => event.key === 'Escape' && hide()}
    >
      {children}
      {shown && <Peek id={id} node={node} devices={devices} />}
    </div>
  );
}

function Peek({ id, node, devices }: { id: string; node: string; devices: number }) {
  const { data } = useQuery(overview.deviceHistory(node, PEEKED_HOURS));
  if (!data) return null;
  const counts = held(data, node);
  return (
    <div id={id} role="tooltip" data-peek={node} className="pointer-events-none absolute top-full left-0 z-20 w-60 max-w-[calc(100vw-2rem)] rounded-[4px] border border-line-strong bg-raised px-3 py-2 text-xs text-text">
      <p className="pb-1 font-medium">{shortNode(node)}</p>
      <svg aria-hidden width="100%" height={HEIGHT} viewBox={`0 -1 ${WIDTH} ${HEIGHT + 2}`} preserveAspectRatio="none" className="block border-b border-line-strong bg-sunken">
        <path d={stepLine(counts, devices, WIDTH, HEIGHT)} fill="none" stroke="var(--accent)" strokeWidth={1.5} vectorEffect="non-scaling-stroke" />
      </svg>
      <p className="pt-1 text-muted">{heldWords(counts, devices, PEEKED_HOURS)}</p>
    </div>
  );
}

/** When one device was held, as a strip. */
export function DeviceStrip({ node, device, label }: { node: string; device: number; label: string }) {
  const { data } = useQuery(overview.deviceHistory(node, PEEKED_HOURS));
  if (!data) return null;
  const counts = held(data, node, device);
  const words = `${label}: ${heldWords(counts, 1, PEEKED_HOURS)}`;
  return (
    <svg role="img" aria-label={words} width={96} height={12} viewBox={`0 0 ${counts.length} 12`} preserveAspectRatio="none" className="block border border-line bg-sunken">
      <title>{words}</title>
      {counts.map((each, at) => each > 0 && <rect key={at} x={at} y={0} width={1.02} height={12} fill="var(--accent)" />)}
    </svg>
  );
}
