/** The history of a measurement: a line for each node, those below their like marked. */

import { useId } from 'react';
import type { BenchmarkHistory } from '../api/types';
import { figure, historyWords, linesOf, minute, pathOf, type Line } from '../lib/benchmarks';
import { benchmarks as texts } from '../texts/english/benchmarks';
import { fill } from '../texts/fill';

const WIDTH = 1000;
const HEIGHT = 180;

export function BenchmarkChart({ history }: { history: BenchmarkHistory }) {
  const id = useId();
  const lines = linesOf(history);
  const top = Math.max(...history.points.map(({ value }) => value));
  const first = history.points[0]?.at;
  const last = history.points.at(-1)?.at;
  const what = fill(history.largerIsBetter ? texts.moreIsBetter : texts.lessIsBetter, { metric: history.metric, unit: history.unit || texts.ownUnit });
  return (
    <figure className="pt-3">
      <figcaption className="pb-3 text-xs text-muted">{history.cut ? fill(texts.olderLeftOut, { what }) : what}</figcaption>
      <div className="grid grid-cols-[auto_1fr] gap-x-3">
        <div aria-hidden className="flex flex-col justify-between text-right text-2xs text-muted" style={{ height: HEIGHT }}>
          <span className="-translate-y-1/2">{figure(top)}</span>
          <span>{figure(top / 2)}</span>
          <span className="translate-y-1/2">0</span>
        </div>
        <svg role="img" aria-labelledby={id} width="100%" height={HEIGHT} className="block overflow-visible border-b border-line-strong">
          <title id={id}>{historyWords(history)}</title>
          <svg aria-hidden viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" width="100%" height={HEIGHT} overflow="visible">
            <path d={`M0 0H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}`} stroke="var(--line)" vectorEffect="non-scaling-stroke" />
            {lines.map((line) => (
              <path key={line.node} d={pathOf(line, WIDTH, HEIGHT)} fill="none" stroke={line.slow ? 'var(--fail)' : 'var(--accent)'} strokeOpacity={line.slow ? 1 : 0.55} strokeWidth={1.5} vectorEffect="non-scaling-stroke" />
            ))}
          </svg>
          {lines.map((line) => (
            <Marks key={line.node} line={line} unit={history.unit} />
          ))}
        </svg>
        <span />
        <p aria-hidden className="flex justify-between pt-1 text-2xs text-muted">
          <span>{first && minute(first)}</span>
          {last !== first && <span>{last && fill(texts.timeUtc, { time: minute(last) })}</span>}
        </p>
      </div>
    </figure>
  );
}

/** A circle for each value, and a square on its corner for one that is below its like. */
function Marks({ line, unit }: { line: Line; unit: string }) {
  return (
    <g data-node={line.node}>
      {line.places.map(({ x, y, point }) => (
        <svg key={point.run} aria-hidden x={`${(x * 100).toFixed(2)}%`} y={y * HEIGHT} overflow="visible">
          {point.slow ? <path data-slow d="M-5 0l5-5 5 5-5 5z" fill="var(--fail)" /> : <circle r={3} fill="var(--accent)" />}
          <title>{fill(texts.valueAt, { node: line.node, value: `${figure(point.value)} ${unit}`.trimEnd(), time: minute(point.at) })}</title>
        </svg>
      ))}
    </g>
  );
}

export function BenchmarkLegend() {
  return (
    <ul aria-label={texts.chartShows} className="flex flex-wrap gap-x-5 gap-y-1 pt-2 text-2xs text-muted">
      <li className="flex items-center gap-1.5">
        <svg width={12} height={12} aria-hidden className="shrink-0">
          <circle cx={6} cy={6} r={3} fill="var(--accent)" />
        </svg>
        {texts.nodeInRun}
      </li>
      <li className="flex items-center gap-1.5">
        <svg width={12} height={12} aria-hidden className="shrink-0">
          <path d="M1 6l5-5 5 5-5 5z" fill="var(--fail)" />
        </svg>
        {texts.breaksRule}
      </li>
    </ul>
  );
}
