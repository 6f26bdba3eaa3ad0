/** One node of the map: its devices in a row, bracketed by the cell that joins them, one run for each job. */

import { Link } from '@tanstack/react-router';
import type { MapNode, Run } from '../lib/cells';
import { marked, NO_MARKS, type Marks, type NodeMark } from '../lib/marks';
import { nodeEnd, partOf, ranges, shortNode } from '../lib/format';
import { belowOf, tileLines, tileName } from '../lib/tiles';
import { map as texts } from '../texts/english/map';
import { counted, fill } from '../texts/fill';
import { Band, bandHeight, Overlay } from './NodeMarks';
import { UsePeek } from './UsePeek';

export interface TileSize {
  width: number;
  height: number;
  /** Whether tiles are large enough to be written on. */
  words: boolean;
}

/** Larger clusters are drawn with smaller tiles. */
export function tileSize(devices: number, compact = false): TileSize {
  if (devices <= 32 && !compact) return { width: 72, height: 44, words: true };
  if (devices <= 32) return { width: 56, height: 42, words: true };
  if (devices <= 128) return { width: 46, height: 38, words: true };
  if (devices <= 512) return { width: 20, height: 20, words: false };
  return { width: 10, height: 12, words: false };
}

interface Props {
  node: MapNode;
  colours: Map<string, number>;
  lit: string;
  onLight?: (job: string) => void;
  size: TileSize;
  /** Without the name beside it. */
  bare?: boolean;
  marks?: Marks;
}

const GROUP_GAP = 9;

export function NodeRow({ node, colours, lit, onLight, size, bare, marks = NO_MARKS }: Props) {
  let x = 0.5;
  const groups = node.groups.map((group) => {
    const at = x;
    x += group.devices.length * size.width + GROUP_GAP;
    return { ...group, at, width: group.devices.length * size.width };
  });
  const width = Math.max(1, x - GROUP_GAP + 1);
  const bands = bandHeight(marks, size.words);
  const height = size.height + bands + 8;
  const bracketed = node.groups.length > 1;
  const name = shortNode(node.name);
  const closed = marks.nodes.get(node.name)?.state === 'cordoned';
  return (
    <div className="flex items-start gap-3">
      {!bare && (
        <UsePeek node={node.name} devices={node.devices}>
          <NodeName node={node} words={size.words} closed={marks.nodes.get(node.name)} />
        </UsePeek>
      )}
      <svg
        width={width}
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="group"
        aria-label={counted(node.ready ? texts.nodeFree : closed ? texts.nodeClosed : texts.nodeNotReady, node.devices, { name, free: node.free })}
        className="h-auto max-w-[calc(100vw-7.5rem)] shrink"
        opacity={node.ready || closed ? 1 : 0.55}
      >
        {groups.map((group) => (
          <g key={group.name} transform={`translate(${group.at} 0.5)`}>
            <title>{group.name}</title>
            <Runs node={node.name} runs={group.runs} colours={colours} lit={lit} onLight={onLight} size={size} marks={marks} />
            <Band node={node.name} devices={group.devices} marks={marks} size={size} top={size.height + (bracketed ? 8 : 2)} />
            {bracketed && (
              <path
                d={`M1.5 ${size.height + 2.5}v3h${group.width - 4.5}v-3`}
                fill="none"
                stroke="var(--line-strong)"
              />
            )}
          </g>
        ))}
      </svg>
    </div>
  );
}

function NodeName({ node, words, closed }: { node: MapNode; words: boolean; closed: NodeMark | undefined }) {
  const free = node.devices ? counted(texts.freeOf, node.free) : texts.noDevices;
  return (
    <div className="w-[4.5rem] shrink-0 text-xs leading-tight" style={{ paddingTop: words ? 6 : 1 }}>
      <div className="truncate" title={node.name}>
        {nodeEnd(node.name)}
      </div>
      {words && (
        <div className={`text-2xs ${node.ready ? 'text-muted' : closed?.state === 'cordoned' ? 'text-wait' : 'text-fail'}`} title={closed?.reason}>
          {node.ready ? free : closed?.state === 'cordoned' ? texts.closedMark : texts.notReadyMark}
        </div>
      )}
    </div>
  );
}

type RunsProps = Omit<Props, 'node'> & { node: string; runs: Run[]; marks: Marks };

function Runs({ node, runs, ...rest }: RunsProps) {
  let at = 0;
  return runs.map((run) => {
    const x = at * rest.size.width;
    at += run.devices.length;
    const first = run.devices[0];
    return (
      <g key={first?.id} transform={`translate(${x} 0)`}>
        {run.job ? <Held node={node} run={run} {...rest} /> : <Free node={shortNode(node)} run={run} size={rest.size} closed={rest.marks.nodes.get(node)?.state === 'cordoned'} />}
      </g>
    );
  });
}

function Free({ node, run, size, closed }: { node: string; run: Run; size: TileSize; closed: boolean }) {
  const device = run.devices[0];
  const sick = device && !device.healthy;
  const shut = device?.free === false && !sick;
  const { states } = texts;
  const state = closed ? states.closed : shut ? ((device.parent ?? -1) >= 0 ? states.whole : states.slices) : states.free;
  return (
    <g>
      <title>{fill(texts.device, { node, index: String(device?.index), state: sick ? fill(texts.unhealthy, { reason: device.healthReason || texts.noReasonGiven }) : state })}</title>
      <rect x={1} y={1} width={size.width - 3} height={size.height - 2} rx={2} fill="var(--raised)" stroke={sick ? 'var(--fail)' : 'var(--line-strong)'} strokeDasharray={sick ? undefined : '3 2.5'} />
      {sick && <path d={`M4 4 ${size.width - 5} ${size.height - 4}M${size.width - 5} 4 4 ${size.height - 4}`} stroke="var(--fail)" />}
      {!sick && size.words && (
        <text x={(size.width - 1) / 2} y={size.height / 2 + 4} textAnchor="middle" fontSize={11} fill="var(--faint)">
          {closed ? '⊘' : device?.index}
        </text>
      )}
    </g>
  );
}

function Held({ node, run, colours, lit, onLight, size, marks }: Omit<RunsProps, 'runs'> & { run: Run }) {
  const job = run.job!;
  const width = run.devices.length * size.width - 3;
  const where = fill(texts.devicesOf, { node: shortNode(node), devices: ranges(run.devices.map((device) => device.index)) });
  const tasks = [...new Set(run.devices.map((device) => `${device.job?.role}-${device.job?.index}${partOf(device.job?.share)}`))];
  const others = run.devices.flatMap((device) => device.others ?? []).map((each) => `${each.name} ${each.role}-${each.index}${partOf(each.share)}`);
  const found = run.devices.flatMap((device) => marks.devices.get(marked(node, device.index)) ?? []);
  const standing = [...(found.some((each) => each.standing === 'guest') ? [texts.standing.guest] : []), ...(found.some((each) => each.leaving) ? [texts.standing.leaving] : [])];
  const holder = { name: job.name, user: job.user, standing };
  const lines = size.words ? tileLines(job.name, belowOf(holder), width) : null;
  const holds = fill(texts.holds, { holder: tileName(holder, lines), tasks: tasks.join(', '), where });
  const label = others.length > 0 ? fill(texts.beside, { holds, others: others.join(', ') }) : holds;
  const hue = colours.get(job.id) ?? 0;
  const ground = `oklch(var(--hue-light) var(--hue-chroma) ${hue})`;
  const away = lit !== '' && lit !== job.id;
  return (
    <Link
      to="/jobs/$ref"
      params={{ ref: job.id }}
      aria-label={label}
      data-job={job.id}
      style={{ opacity: away ? 0.3 : 1 }}
      onMouseEnter={() => onLight?.(job.id)}
      onMouseLeave={() => onLight?.('')}
    >
      <title>{label}</title>
      <rect
        x={1}
        y={1}
        width={width}
        height={size.height - 2}
        rx={2}
        fill={ground}
        stroke={lit === job.id ? 'var(--accent)' : `oklch(var(--hue-edge) 0.09 ${hue})`}
        strokeWidth={lit === job.id ? 2 : 1}
      />
      {run.devices.slice(1).map((device, at) => {
        const before = run.devices[at]?.job;
        const other = before?.role !== device.job?.role || before?.index !== device.job?.index;
        const x = (at + 1) * size.width - 0.5;
        const inset = other ? 2 : size.height * 0.8;
        return (
          <path
            key={device.id}
            d={`M${x} ${inset}V${size.height - 1}`}
            stroke={other ? 'var(--ground)' : `oklch(var(--hue-edge) 0.09 ${hue})`}
            strokeWidth={other ? 1.5 : 1}
          />
        );
      })}
      <Overlay node={node} devices={run.devices} marks={marks} size={size} hue={hue} />
      {lines && <Words lines={lines} width={width} height={size.height} ground={ground} />}
    </Link>
  );
}

interface WordsProps {
  lines: readonly [string, string];
  width: number;
  height: number;
  /** The tile's colour, drawn around the letters so that the lines between tasks never cross them. */
  ground: string;
}

function Words({ lines, width, height, ground }: WordsProps) {
  return (
    <svg x={1} y={0} width={width - 1} height={height} fill="var(--hue-text)" stroke={ground} strokeWidth={3.5} pointerEvents="none" paintOrder="stroke">
      <text x={5} y={height / 2 - 2} fontSize={11} fontWeight={600}>
        {lines[0]}
      </text>{' '}
      <text x={5} y={height / 2 + 11} fontSize={10}>
        {lines[1]}
      </text>
    </svg>
  );
}
