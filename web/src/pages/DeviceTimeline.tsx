/** Devices over time: which jobs were on each node, and which are expected to be, with a table behind it. */

import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import * as overview from '../api/overview';
import { nodes as askNodes } from '../api/queries';
import type { DeviceTimeline } from '../api/types';
import { CommandLine } from '../components/Copy';
import { DeviceBars } from '../components/DeviceBars';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { useTitle } from '../components/useTitle';
import { fitting, HOURS, listed, timelineLine, USUAL } from '../lib/devicetimeline';
import { ranges, shortNode } from '../lib/format';
import { absolute, clock, dayAndMonth } from '../lib/time';
import { timeline as texts } from '../texts/english/timeline';
import { counted, fill } from '../texts/fill';

const route = getRouteApi('/frame/timeline');
/** Lines of the table that are drawn before one asks for more. */
const FIRST = 200;

export function DeviceTimelinePage() {
  const { node = '', hours } = route.useSearch();
  const navigate = route.useNavigate();
  const [first, setFirst] = useState<(typeof HOURS)[number]>(); // what was first looked at stays while time goes on
  const usual = useInfiniteQuery({ ...overview.deviceTimeline('', Number(USUAL)), enabled: !hours && !first });
  if (!first && usual.data?.pages[0]?.past.length) setFirst(fitting(usual.data.pages[0])); // of a first job its begin may come late
  const chosen = HOURS.find((each) => each === (hours ?? first)) ?? USUAL;
  const list = useInfiniteQuery(overview.deviceTimeline(node, Number(chosen)));
  const pages = list.data?.pages ?? [];
  const troubles = [...new Set(pages.map(({ trouble }) => trouble).filter(Boolean))];
  const left = pages.reduce((sum, page) => sum + page.pastLeftOut + page.expectedLeftOut, 0);
  const set = (change: { node?: string; hours?: string }) => void navigate({ search: (now) => ({ ...now, ...change }), replace: true });
  useTitle(texts.title);
  return (
    <section className="pt-5">
      <h1 className="text-lg font-semibold">{texts.title}</h1>
      <div className="flex flex-wrap items-end gap-3 py-2.5">
        <NodeChoice node={node} onChange={(next) => set({ node: next || undefined })} />
        <div role="group" aria-label={texts.lookAround} className="flex gap-1">
          {HOURS.map((each) => (
            <button key={each} type="button" className="btn aria-pressed:border-accent aria-pressed:text-accent" aria-pressed={each === chosen} onClick={() => set({ hours: each })}>
              {fill(texts.hours, { hours: each })}
            </button>
          ))}
        </div>
        <p className="max-w-[70ch] text-xs text-muted">{texts.note}</p>
      </div>
      {list.error && !list.data && <Fault error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && <Skeleton rows={6} height={30} />}
      {troubles.map((trouble) => (
        <p key={trouble} role="status" className="pb-2 text-sm text-wait">
          {trouble}
        </p>
      ))}
      {list.data && pages.every((page) => page.nodes.length === 0) && <Empty title={texts.noNode} line="corral doctor" />}
      <figure aria-label={texts.byNode} className="min-w-0 space-y-3">
        {pages.map((page) => page.nodes.length > 0 && <DeviceBars key={page.nodes[0]?.name} timeline={page} />)}
      </figure>
      <div className="flex flex-wrap items-center justify-between gap-3 pt-3">
        {list.hasNextPage ? (
          <button type="button" className="btn" disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            {texts.showMoreNodes}
          </button>
        ) : (
          <span />
        )}
        <CommandLine line={timelineLine(node, chosen)} />
      </div>
      {left > 0 && <p className="pt-1 text-xs text-muted">{counted(texts.leftOut, left)}</p>}
      {list.data && <AsTable pages={pages} />}
    </section>
  );
}

function NodeChoice({ node, onChange }: { node: string; onChange: (node: string) => void }) {
  const { data } = useInfiniteQuery(askNodes);
  const names = (data?.pages.flatMap((page) => page.items) ?? []).filter(({ devices }) => devices.length > 0).map(({ name }) => name);
  const all = node && !names.includes(node) ? [node, ...names] : names;
  return (
    <label className="space-y-1">
      <span className="label block">{texts.node}</span>
      <select className="field !w-48" value={node} onChange={(event) => onChange(event.target.value)}>
        <option value="">{texts.allNodes}</option>
        {all.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}

function AsTable({ pages }: { pages: readonly DeviceTimeline[] }) {
  const [open, setOpen] = useState(false);
  const [most, setMost] = useState(FIRST);
  const lines = open ? pages.flatMap(listed) : [];
  return (
    <details className="pt-4" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="cursor-pointer text-sm">{texts.asTable}</summary>
      {open && lines.length === 0 && <p className="py-2 text-sm text-muted">{texts.nothingThere}</p>}
      {lines.length > 0 && (
        <table className="grid-table" aria-label={texts.title}>
          <thead>
            <tr>
              <th>{texts.node}</th>
              <th className="max-sm:hidden">{texts.devices}</th>
              <th>{texts.job}</th>
              <th className="max-md:hidden">{texts.user}</th>
              <th className="max-md:hidden">{texts.queue}</th>
              <th>{texts.from}</th>
              <th>{texts.to}</th>
            </tr>
          </thead>
          <tbody>
            {lines.slice(0, most).map(({ stay, expected }) => (
              <tr key={`${stay.node} ${stay.job} ${stay.begin} ${stay.devices.join()} ${expected}`}>
                <td>{shortNode(stay.node)}</td>
                <td className="max-sm:hidden">{ranges(stay.devices)}</td>
                <td>
                  <Link to="/jobs/$ref" params={{ ref: stay.job }} className="link">
                    {stay.name}
                  </Link>
                  {expected && <span className="text-muted"> {texts.expected}</span>}
                </td>
                <td className="max-md:hidden">{stay.user}</td>
                <td className="max-md:hidden">{stay.queue}</td>
                <td>
                  <At time={stay.begin} />
                </td>
                <td>{stay.end ? <At time={stay.end} /> : <span className="text-muted">{expected ? texts.later : texts.runs}</span>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {lines.length > most && (
        <button type="button" className="btn mt-2" onClick={() => setMost(most + FIRST)}>
          {counted(texts.showMoreLines, Math.min(FIRST, lines.length - most))}
        </button>
      )}
    </details>
  );
}

function At({ time }: { time: string }) {
  const other = new Date(time).toDateString() !== new Date().toDateString();
  return (
    <time dateTime={time} title={absolute(time)} className="whitespace-nowrap">
      {other && `${dayAndMonth(time)} `}
      {clock(time)}
    </time>
  );
}
