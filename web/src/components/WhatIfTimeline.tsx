/** What runs on which devices until the horizon: a row for each node, as things are or with the changes. */

import { useState } from 'react';
import type { Stay, WhatIfAnswer } from '../api/types';
import { hues } from '../lib/cells';
import { duration } from '../lib/time';
import { type Bar, type Row, rows, ticks } from '../lib/timeline';
import { counts } from '../texts/english/counts';
import { whatif as texts } from '../texts/english/whatif';
import { counted, fill } from '../texts/fill';

/** Rows that are drawn before one asks for more. */
const FIRST = 24;
const DEVICE = 7;
const LEAST = 16;

export function WhatIfTimeline({ answer, changed }: { answer: WhatIfAnswer; changed: boolean }) {
  const [before, setBefore] = useState(false);
  const [all, setAll] = useState(false);
  const timeline = answer.timeline;
  if (!timeline || timeline.nodes.length === 0) return null;
  const stays = before ? timeline.before : timeline.after;
  const drawn = rows(timeline, stays, answer.horizonSeconds);
  const oneEngine = new Set(drawn.map((row) => row.name.split('/')[0])).size === 1;
  const colours = hues(new Set([...timeline.before, ...timeline.after].map((stay) => stay.job)));
  return (
    <figure className="min-w-0" aria-label={texts.timeline}>
      <figcaption className="flex flex-wrap items-center gap-x-2 gap-y-1 pb-1.5">
        <span className="label grow">{texts.devicesByNode}</span>
        {changed &&
          [true, false].map((each) => (
            <button key={String(each)} type="button" aria-pressed={before === each} className="btn !h-7 aria-pressed:border-accent aria-pressed:text-accent" onClick={() => setBefore(each)}>
              {each ? texts.shown.before : texts.shown.after}
            </button>
          ))}
      </figcaption>
      <div className="space-y-1">
        {(all ? drawn : drawn.slice(0, FIRST)).map((row) => (
          <NodeBars key={row.name} row={row} label={oneEngine ? row.name.slice(row.name.indexOf('/') + 1) : row.name} colours={colours} horizon={answer.horizonSeconds} />
        ))}
      </div>
      <Axis horizon={answer.horizonSeconds} />
      {!all && drawn.length > FIRST && (
        <button type="button" className="btn mt-1.5" onClick={() => setAll(true)}>
          {counted(texts.showMoreNodes, drawn.length - FIRST)}
        </button>
      )}
      {timeline.leftOut > 0 && <p className="pt-1 text-xs text-muted">{counted(texts.staysLeftOut, timeline.leftOut)}</p>}
    </figure>
  );
}

function NodeBars({ row, label, colours, horizon }: { row: Row; label: string; colours: Map<string, number>; horizon: number }) {
  const height = Math.max(LEAST, row.devices * DEVICE);
  const device = height / row.devices;
  return (
    <div className="grid grid-cols-[7rem_minmax(0,1fr)] items-center gap-2 max-sm:grid-cols-[4.5rem_minmax(0,1fr)]">
      <span className="truncate text-xs text-muted" title={row.name}>
        {label}
      </span>
      <div role="img" aria-label={fill(texts.nodeSpoken, { node: row.name, words: spoken(row) })} className="relative overflow-hidden border-b border-l border-line bg-sunken" style={{ height }}>
        {ticks(horizon).map((at) => (
          <span key={at} className="absolute inset-y-0 border-l border-line" style={{ left: `${(at / horizon) * 100}%` }} />
        ))}
        {row.bars.map((bar) => (
          <OneBar key={`${bar.stay.job} ${bar.stay.begin} ${bar.from}`} bar={bar} device={device} hue={colours.get(bar.stay.job) ?? 0} />
        ))}
      </div>
    </div>
  );
}

function OneBar({ bar, device, hue }: { bar: Bar; device: number; hue: number }) {
  const { stay } = bar;
  return (
    <span
      title={told(stay)}
      className="absolute truncate rounded-[2px] border px-1 text-2xs leading-3.5"
      style={{
        left: `${bar.left * 100}%`,
        width: `${bar.width * 100}%`,
        top: bar.from * device,
        height: bar.count * device - 1,
        minWidth: 2,
        background: `oklch(var(--hue-light) var(--hue-chroma) ${hue})`,
        borderColor: `oklch(var(--hue-edge) 0.09 ${hue})`,
        color: 'var(--hue-text)',
      }}
    >
      {bar.count * device >= 13 && bar.width > 0.06 ? stay.name : ''}
    </span>
  );
}

function Axis({ horizon }: { horizon: number }) {
  return (
    <div aria-hidden className="relative ml-[7.5rem] h-4 text-2xs text-muted max-sm:ml-[5rem]">
      <span className="absolute left-0">{texts.now}</span>
      {ticks(horizon).map((at) => (
        <span key={at} className="absolute -translate-x-1/2" style={{ left: `${(at / horizon) * 100}%` }}>
          {duration(at)}
        </span>
      ))}
    </div>
  );
}

const when = (seconds: number) => (seconds < 1 ? texts.now : fill(texts.inTime, { time: duration(Math.round(seconds)) }));

function told(stay: Stay): string {
  const end = stay.end === null || stay.end === undefined ? texts.afterTime : when(stay.end);
  const values = { job: stay.name, user: stay.user, queue: stay.queue, devices: counted(counts.devices, stay.devices.length), begin: when(stay.begin), end };
  return fill(stay.user ? texts.stayOfUser : texts.stay, values);
}

/** The row in words, for who cannot see it; the first five jobs. */
function spoken(row: Row): string {
  const stays = [...new Set(row.bars.map((bar) => bar.stay))];
  if (stays.length === 0) return texts.nothing;
  const first = stays.slice(0, 5).map(told).join('; ');
  return stays.length > 5 ? counted(texts.andMore, stays.length - 5, { stays: first }) : first;
}
