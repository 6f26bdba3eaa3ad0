/** Devices over time: a row for each node, what was in full colour and what is expected as an outline. */

import { Link } from '@tanstack/react-router';
import type { DeviceTimeline } from '../api/types';
import { hues } from '../lib/cells';
import { type Bar, marks, type Row, rows, spoken } from '../lib/devicetimeline';
import { shortNode } from '../lib/format';
import { absolute } from '../lib/time';
import { counts } from '../texts/english/counts';
import { timeline as texts } from '../texts/english/timeline';
import { counted, fill } from '../texts/fill';

const DEVICE = 7;
const LEAST = 16;
const GRID = 'grid grid-cols-[7rem_minmax(0,1fr)] gap-x-2 max-sm:grid-cols-[4.5rem_minmax(0,1fr)]';

export function DeviceBars({ timeline }: { timeline: DeviceTimeline }) {
  const colours = hues(new Set([...timeline.past, ...timeline.expected].map(({ job }) => job)));
  const ticks = marks(timeline);
  return (
    <div className="space-y-1">
      {rows(timeline).map((row) => (
        <NodeBars key={row.name} row={row} ticks={ticks} colours={colours} />
      ))}
      <div aria-hidden className={GRID}>
        <span />
        <div className="relative h-4 text-2xs text-muted">
          {ticks.map(({ at, word, now }, number) => (
            <span key={word} className={`absolute -translate-x-1/2 ${now ? 'font-medium text-text' : number % 2 ? '' : 'max-sm:hidden'}`} style={{ left: `${at * 100}%` }}>
              {word}
            </span>
          ))}
        </div>
      </div>
    </div>
  );
}

function NodeBars({ row, ticks, colours }: { row: Row; ticks: ReturnType<typeof marks>; colours: Map<string, number> }) {
  const height = Math.max(LEAST, row.devices * DEVICE);
  const device = height / Math.max(1, row.devices);
  return (
    <div className={`${GRID} items-center`} data-node={row.name}>
      <Link to="/nodes" search={{ node: row.name }} className="truncate text-xs text-muted hover:underline" title={row.name}>
        {shortNode(row.name)}
      </Link>
      <div>
        <p className="sr-only">{spoken(row)}</p>
        <div aria-hidden className="relative overflow-hidden border-b border-l border-line bg-sunken" style={{ height }}>
          {ticks.map(({ at, word, now }) => (
            <span key={word} className={`absolute inset-y-0 ${now ? 'z-10 border-l-2 border-accent' : 'border-l border-line'}`} style={{ left: `${at * 100}%` }} />
          ))}
          {row.bars.map((bar) => (
            <OneBar key={`${bar.stay.job} ${bar.stay.begin} ${bar.from} ${bar.expected}`} bar={bar} device={device} hue={colours.get(bar.stay.job) ?? 0} />
          ))}
        </div>
      </div>
    </div>
  );
}

/** A bar leads to its job; by keyboard the table below does. */
function OneBar({ bar, device, hue }: { bar: Bar; device: number; hue: number }) {
  const { stay, expected } = bar;
  const height = bar.count * device - 1;
  const edge = `oklch(var(--hue-edge) 0.09 ${hue})`;
  return (
    <Link
      to="/jobs/$ref"
      params={{ ref: stay.job }}
      tabIndex={-1}
      title={told(bar)}
      data-bar={expected ? 'expected' : stay.end === null ? 'runs' : 'past'}
      className={`absolute truncate rounded-[2px] border px-1 text-2xs leading-3.5 ${expected ? 'border-dashed' : ''}`}
      style={{
        left: `${bar.left * 100}%`,
        width: `${bar.width * 100}%`,
        top: bar.from * device,
        height,
        minWidth: 2,
        background: expected ? 'var(--ground)' : `oklch(var(--hue-light) var(--hue-chroma) ${hue})`,
        borderColor: edge,
        color: expected ? 'var(--text)' : 'var(--hue-text)',
      }}
    >
      {height >= 13 && bar.width > 0.06 ? stay.name : ''}
    </Link>
  );
}

function told({ stay, expected }: Bar): string {
  const end = stay.end ? fill(texts.untilTime, { time: absolute(stay.end) }) : expected ? texts.untilAfterForecast : texts.untilNow;
  const values = { job: stay.name, user: stay.user, queue: stay.queue, devices: counted(counts.devices, stay.devices.length), begin: absolute(stay.begin), end };
  return fill(expected ? texts.stayExpected : texts.stay, values);
}
