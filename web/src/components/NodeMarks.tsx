/** The marks of the map: a band below devices whose cell is bound to a queue, stripes on guests, broken edges on what leaves. */

import type { Device } from '../api/types';
import { hues } from '../lib/cells';
import { cut } from '../lib/format';
import { marked, type DeviceMark, type Marks } from '../lib/marks';
import { map as texts } from '../texts/english/map';
import { fill } from '../texts/fill';
import type { TileSize } from './NodeRow';

const BAND = 3;
const NAME = 11;
const LETTER = 5.6;

/** How much higher a node is drawn so that bands, and on large tiles the owners' names, have room. */
export function bandHeight(marks: Marks, words: boolean): number {
  if (marks.owners.length === 0) return 0;
  return words ? BAND + NAME : BAND + 1;
}

/** Owners have colours of their own, apart from those of jobs by being lines, and are named. */
export function ownerColour(owner: string): string {
  return `oklch(var(--hue-edge) 0.12 ${hues([`queue ${owner}`]).get(`queue ${owner}`) ?? 0})`;
}

interface Props {
  node: string;
  devices: Device[];
  marks: Marks;
  size: TileSize;
}

interface Stretch {
  owner: string;
  pinned: boolean;
  first: number;
  count: number;
}

function stretches(node: string, devices: Device[], marks: Marks): Stretch[] {
  const found: Stretch[] = [];
  devices.forEach((device, at) => {
    const mark = marks.devices.get(marked(node, device.index));
    const owner = mark?.owner ?? marks.nodes.get(node)?.owner;
    if (!owner) return;
    const pinned = mark?.pinned ?? false;
    const last = found.at(-1);
    if (last && last.owner === owner && last.pinned === pinned && last.first + last.count === at) last.count += 1;
    else found.push({ owner, pinned, first: at, count: 1 });
  });
  return found;
}

export function Band({ node, devices, marks, size, top }: Props & { top: number }) {
  return stretches(node, devices, marks).map(({ owner, pinned, first, count }) => {
    const x = first * size.width + 1;
    const width = count * size.width - 3;
    const words = pinned ? fill(texts.pinnedTo, { owner }) : fill(texts.boundTo, { owner });
    const word = pinned ? fill(texts.pinnedMark, { owner }) : owner;
    return (
      <g key={first} data-owner={owner}>
        <title>{words}</title>
        <rect x={x} y={top} width={width} height={BAND} fill={ownerColour(owner)} />
        {size.words && (
          <text x={x} y={top + BAND + NAME - 2} fontSize={9.5} fill="var(--muted)">
            {cut(word, Math.max(1, Math.floor(width / LETTER)))}
          </text>
        )}
      </g>
    );
  });
}

export function Overlay({ node, devices, marks, size, hue }: Props & { hue: number }) {
  const stripes = `guest-${hue}`;
  const of = (device: Device): DeviceMark | undefined => marks.devices.get(marked(node, device.index));
  if (!devices.some((device) => of(device)?.standing === 'guest' || of(device)?.leaving)) return null;
  return (
    <g pointerEvents="none">
      <Stripes id={stripes} colour={`oklch(var(--hue-edge) 0.09 ${hue})`} />
      {devices.map((device, at) => {
        const mark = of(device);
        const x = at * size.width + 1;
        const width = size.width - (at === devices.length - 1 ? 3 : 1);
        return (
          <g key={device.id}>
            {mark?.standing === 'guest' && <rect x={x} y={1} width={width} height={size.height - 2} fill={`url(#${stripes})`} opacity={0.55} />}
            {mark?.leaving && (
              <rect x={x + 1.5} y={2.5} width={width - 3} height={size.height - 5} fill="none" stroke="var(--wait)" strokeWidth={1.5} strokeDasharray="3 2.5" />
            )}
          </g>
        );
      })}
    </g>
  );
}

function Stripes({ id, colour }: { id: string; colour: string }) {
  return (
    <defs>
      <pattern id={id} width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <path d="M1 0v7" stroke={colour} strokeWidth="2" />
      </pattern>
    </defs>
  );
}

export function MarkLegend({ marks }: { marks: Marks }) {
  const closed = [...marks.nodes.values()].some((node) => node.state === 'cordoned');
  return (
    <>
      {marks.owners.map((owner) => (
        <p key={owner} className="flex items-center gap-1.5">
          <span aria-hidden className="inline-block h-[3px] w-4" style={{ background: ownerColour(owner) }} />
          {fill(texts.boundTo, { owner })}
        </p>
      ))}
      {marks.pinned && <p>{texts.pinned}</p>}
      {marks.guests && (
        <p className="flex items-center gap-1.5">
          <svg width="16" height="10" aria-hidden>
            <Stripes id="guest-key" colour="var(--muted)" />
            <rect x={0.5} y={0.5} width={15} height={9} fill="url(#guest-key)" stroke="var(--line-strong)" />
          </svg>
          {texts.guestYieldsOwners}
        </p>
      )}
      {marks.leaving && (
        <p className="flex items-center gap-1.5">
          <svg width="16" height="10" aria-hidden>
            <rect x={1} y={1} width={14} height={8} fill="none" stroke="var(--wait)" strokeWidth={1.5} strokeDasharray="3 2.5" />
          </svg>
          {texts.leaving}
        </p>
      )}
      {closed && <p>{texts.closedKey}</p>}
    </>
  );
}
