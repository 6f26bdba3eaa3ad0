/** The machines as a table: what each has, what is held, and its devices one by one. */

import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { Fragment, useMemo, useRef } from 'react';
import * as monitoring from '../api/monitoring';
import * as overview from '../api/overview';
import * as ask from '../api/queries';
import type { Amounts, Cordon, Health, Node } from '../api/types';
import { BesideCorral } from '../components/BesideCorral';
import { CommandLine } from '../components/Copy';
import { DeviceLinks } from '../components/DeviceLinks';
import { HealthCounts } from '../components/HealthCounts';
import { NodeActions } from '../components/NodeActions';
import { NodeHealth } from '../components/NodeHealth';
import { NodeRow } from '../components/NodeRow';
import { NodeTabs } from '../components/NodeTabs';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { Totals } from '../components/Totals';
import { DeviceStrip, PEEKED_HOURS, UsePeek } from '../components/UsePeek';
import { useTitle } from '../components/useTitle';
import { holders, hues, racks, type MapNode } from '../lib/cells';
import { bytes, cpus, shortNode } from '../lib/format';
import { score, stateWords, toneOf } from '../lib/health';
import { useKeys, useRowSteps } from '../lib/keys';
import { marks, type Marks } from '../lib/marks';
import { counts } from '../texts/english/counts';
import { nodes as words } from '../texts/english/nodes';
import { counted, fill } from '../texts/fill';

const route = getRouteApi('/frame/nodes');

export function Nodes() {
  const { q = '', node: open = '' } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useInfiniteQuery(ask.nodes);
  const { data: tree } = useQuery(ask.cluster);
  const { data: top } = useQuery(ask.top);
  const { data: owners } = useQuery(overview.cells);
  const { data: ledger } = useQuery(monitoring.health);
  const health = useMemo(() => new Map(ledger?.items.map((each) => [each.node, each])), [ledger]);
  const marked = useMemo(() => marks(owners?.cell), [owners]);
  const field = useRef<HTMLInputElement>(null);
  useTitle(words.nodes);
  const { drawn, colours } = useMemo(() => {
    const all = tree ? racks(tree) : [];
    return {
      drawn: new Map(all.flatMap((rack) => rack.nodes.map((node) => [node.name, node] as const))),
      colours: hues(holders(all).keys()),
    };
  }, [tree]);
  const nodes = (list.data?.pages.flatMap((page) => page.items) ?? []).filter((node) => matches(node, q, health.get(node.name)));
  const set = (change: { q?: string; node?: string }) => void navigate({ search: (now) => ({ ...now, ...change }), replace: true });
  const step = useRowSteps(nodes.map(({ name }) => name), open, (next) => set({ node: next }));
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    '/': (event) => {
      event.preventDefault();
      field.current?.focus();
    },
  });
  return (
    <section className="pt-5">
      <h1 className="sr-only">{words.nodes}</h1>
      <NodeTabs />
      <div className="pt-4">{top ? <Totals top={top} /> : <Skeleton rows={2} />}</div>
      <div className="flex flex-wrap items-center gap-3 pt-5 pb-2">
        <input
          ref={field}
          type="search"
          aria-label={words.searchNodesName}
          placeholder={words.searchNameRack}
          className="field !w-80 max-sm:!w-full"
          value={q}
          onChange={(event) => set({ q: event.target.value || undefined })}
          onKeyDown={(event) => event.key === 'Escape' && field.current?.blur()}
        />
        <Link to="/timeline" className="link text-sm">
          {words.devicesOverTime}
        </Link>
        <HealthCounts health={ledger?.items ?? []} q={q} onChoose={(next) => set({ q: next || undefined })} />
      </div>
      {list.error && !list.data && <Fault error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && <Skeleton rows={6} height={30} />}
      {list.data && nodes.length === 0 && (
        <Empty title={q ? words.noNodeMatches : words.machineKnownYet} line={q ? undefined : 'corral doctor'} />
      )}
      {nodes.length > 0 && (
        <table className="grid-table [&_td]:!align-middle">
          <thead>
            <tr>
              <th>{words.node}</th>
              <th className="max-md:hidden">{words.within}</th>
              <th>{words.devices}</th>
              <th className="num max-md:hidden">{words.free}</th>
              <th className="num max-sm:hidden">{words.processors}</th>
              <th className="num max-lg:hidden">{words.memory}</th>
              <th className="num max-lg:hidden">{words.tasks}</th>
            </tr>
          </thead>
          <tbody>
            {nodes.map((node) => (
              <Fragment key={node.name}>
                <NodeLine node={node} health={health.get(node.name)} drawn={drawn.get(node.name)} marks={marked} colours={colours} open={open === node.name} onOpen={() => set({ node: open === node.name ? undefined : node.name })} />
                {open === node.name && (
                  <tr>
                    <td colSpan={7} className="!bg-sunken !p-0">
                      <Devices node={node} health={health.get(node.name)} />
                    </td>
                  </tr>
                )}
              </Fragment>
            ))}
          </tbody>
        </table>
      )}
      <div className="flex justify-between pt-3">
        {list.hasNextPage ? (
          <button type="button" className="btn" onClick={() => void list.fetchNextPage()}>
            {words.showMoreNodes}
          </button>
        ) : (
          <span />
        )}
        <CommandLine line={health.size > 0 ? 'corral nodes --health' : 'corral nodes'} />
      </div>
      <BesideCorral />
    </section>
  );
}

function matches(node: Node, q: string, health: Health | undefined): boolean {
  const word = q.toLowerCase();
  const texts = [
    node.name,
    health?.state ?? '',
    ...Object.values(node.levels),
    ...Object.entries(node.labels).map(([name, value]) => `${name}=${value}`),
    ...node.devices.flatMap((device) => [device.model, device.job?.name ?? '', device.job?.user ?? '']),
  ];
  return !word || texts.some((text) => text.toLowerCase().includes(word));
}

/** Who closed a node, and how far its draining is. */
export function closed(node: Node, cordon: Cordon): string {
  const how = !cordon.drain ? 'cordoned' : node.tasks === 0 ? 'drained' : cordon.drain === 'now' ? 'draining' : 'afterJobs';
  const state = fill(words.closed[how], { tasks: counted(counts.tasks, node.tasks), by: cordon.by });
  return cordon.why ? fill(words.because, { state, why: cordon.why }) : state;
}

const held = (node: Node, field: keyof Amounts) => node.total[field] - node.free[field];

interface LineProps {
  node: Node;
  health: Health | undefined;
  drawn: MapNode | undefined;
  marks: Marks;
  colours: Map<string, number>;
  open: boolean;
  onOpen: () => void;
}

function NodeLine({ node, health, drawn, marks, colours, open, onOpen }: LineProps) {
  const large = node.devices.length > 16;
  return (
    <tr data-node={node.name}>
      <td>
        <UsePeek node={node.name} devices={node.devices.length}>
          <button type="button" aria-expanded={open} onClick={onOpen} className="font-medium hover:underline">
            {shortNode(node.name)}
          </button>
        </UsePeek>
        <div className={`max-w-72 text-xs ${node.ready ? 'text-muted' : 'text-fail'}`} title={node.reason || fill(words.lastChanged, { seenAt: node.seenAt })}>
          {node.ready ? words.ready : node.reason ? fill(words.notReadyBecause, { why: node.reason }) : words.notReady}
        </div>
        {health && health.state !== 'healthy' && (
          <div className={`max-w-72 text-xs ${toneOf(health.state)}`}>
            {fill(!node.cordon && health.by !== 'health' && health.why ? words.scoreBecause : words.score, {
              state: stateWords(health.state),
              score: score(health.score),
              why: health.why,
            })}
          </div>
        )}
        {node.cordon && <div className="max-w-72 text-xs text-wait">{closed(node, node.cordon)}</div>}
      </td>
      <td className="text-muted max-md:hidden">
        {Object.values(node.levels).join(' / ') || '–'}
        <div className="text-xs">{node.engine}</div>
      </td>
      <td>
        {drawn && <NodeRow bare marks={marks} node={drawn} colours={colours} lit="" size={{ width: large ? 16 : 48, height: large ? 18 : 34, words: !large }} />}
      </td>
      <td className="num whitespace-nowrap max-md:hidden">
        {node.free.devices} <span className="text-faint">{fill(words.of, { devices: node.total.devices })}</span>
      </td>
      <td className="num whitespace-nowrap max-sm:hidden">
        {cpus(held(node, 'cpuMillis'))} <span className="text-faint">{fill(words.ofRow, { cpuMillis: cpus(node.total.cpuMillis) })}</span>
      </td>
      <td className="num whitespace-nowrap max-lg:hidden">
        {bytes(held(node, 'memoryBytes'))} <span className="text-faint">{fill(words.ofMemory, { memoryBytes: bytes(node.total.memoryBytes) })}</span>
      </td>
      <td className="num max-lg:hidden">{node.tasks}</td>
    </tr>
  );
}

function Devices({ node, health }: { node: Node; health: Health | undefined }) {
  const labels = Object.entries(node.labels).map(([name, value]) => `${name}=${value}`);
  const devices = counted(counts.devices, node.devices.length);
  return (
    <div className="px-3 py-2">
      {labels.length > 0 && <p className="py-1 font-mono text-xs text-muted">{labels.join('  ')}</p>}
      <div className="flex flex-wrap items-center justify-between gap-x-3 gap-y-2 py-1">
        <p className="text-xs text-muted">
          {node.devices.some((device) => device.described) ? fill(words.devicesDescribed, { devices }) : devices}
        </p>
        <NodeActions node={node} />
      </div>
      <NodeHealth node={node.name} health={health} />
      <table className="grid-table">
        <thead>
          <tr>
            <th className="num w-12">{words.number}</th>
            <th>{words.model}</th>
            <th className="num max-sm:hidden">{words.memory}</th>
            <th className="max-sm:hidden">{words.within}</th>
            <th>{words.health}</th>
            <th>{words.heldBy}</th>
            <th className="max-md:hidden">{fill(words.lastH, { PEEKED_HOURS })}</th>
          </tr>
        </thead>
        <tbody>
          {node.devices.map((device) => (
            <tr key={device.id}>
              <td className="num">{device.index}</td>
              <td>{device.model || device.kind}</td>
              <td className="num max-sm:hidden">{device.memoryBytes ? bytes(device.memoryBytes) : '–'}</td>
              <td className="text-muted max-sm:hidden">{Object.entries(device.cells).map((cell) => cell.join(' ')).join(', ') || '–'}</td>
              <td className={device.healthy ? 'text-muted' : 'text-fail'}>{device.healthy ? words.healthy : `✕ ${device.healthReason || words.unhealthy}`}</td>
              <td>
                {device.job ? (
                  <>
                    <Link to="/jobs/$ref" params={{ ref: device.job.id }} className="link">
                      {device.job.name}
                    </Link>
                    <span className="text-muted">
                      {' '}
                      {device.job.role}-{device.job.index}, {device.job.user}
                    </span>
                  </>
                ) : (
                  <span className="text-faint">{words.freeRow}</span>
                )}
              </td>
              <td className="max-md:hidden">
                <DeviceStrip node={node.name} device={device.index} label={fill(words.device, { index: device.index })} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <DeviceLinks node={node} />
    </div>
  );
}
