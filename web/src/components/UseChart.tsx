/** Use by day as stacked bars, one colour for each of the largest users, queues or models. */

import { useId } from 'react';
import { hues } from '../lib/cells';
import { amount, ceiling, chartWords, nameOf, OTHERS, type Charted, type Stack } from '../lib/usage';
import { usage as texts } from '../texts/english/usage';
import { fill, number } from '../texts/fill';

const HEIGHT = 160;
/** Width of a day in the picture's own unit, and of its bar. */
const STEP = 10;
const BAR = 8;

/** A round number of the axis. */
const axis = (value: number) => number(value, { maximumSignificantDigits: 3 });

interface Props {
  stacks: readonly Stack[];
  days: readonly string[];
  by: Charted;
  /** What is shown, with its unit: `Device-hours`. */
  what: string;
}

export function UseChart({ stacks, days, by, what }: Props) {
  const id = useId();
  const sums = days.map((_, place) => stacks.reduce((total, { values }) => total + (values[place] ?? 0), 0));
  const top = ceiling(Math.max(0, ...sums));
  const colours = hues(stacks.map(({ key }) => `use ${key}`));
  const words = chartWords(stacks, by, what, days);
  const named = (key: string) => nameOf(by, { key, name: '' });
  return (
    <figure className="pt-4">
      <figcaption className="pb-2.5 text-xs text-muted">{fill(texts.dayUtc, { what })}</figcaption>
      <div className="grid grid-cols-[auto_1fr] gap-x-2">
        <div aria-hidden className="flex flex-col justify-between text-right text-2xs text-muted" style={{ height: HEIGHT }}>
          <span className="-translate-y-1/2">{axis(top)}</span>
          <span>{axis(top / 2)}</span>
          <span className="translate-y-1/2">0</span>
        </div>
        <svg role="img" aria-labelledby={id} viewBox={`0 0 ${days.length * STEP} ${HEIGHT}`} preserveAspectRatio="none" width="100%" height={HEIGHT} className="block border-b border-line-strong">
          <title id={id}>{words}</title>
          {[0, 0.5].map((part) => (
            <path key={part} d={`M0 ${HEIGHT * part}H${days.length * STEP}`} stroke="var(--line)" vectorEffect="non-scaling-stroke" />
          ))}
          {days.map((day, place) => (
            <Day key={day} day={day} place={place} stacks={stacks} top={top} colours={colours} named={named} />
          ))}
        </svg>
        <span />
        <p aria-hidden className="flex justify-between pt-1 text-2xs text-muted">
          <span>{days[0]}</span>
          {days.length > 2 && <span className="max-sm:hidden">{days[Math.floor(days.length / 2)]}</span>}
          {days.length > 1 && <span>{days.at(-1)}</span>}
        </p>
      </div>
      <ul aria-label={texts.whatColoursMean} className="flex flex-wrap gap-x-4 gap-y-1 pt-2 text-xs">
        {stacks.map(({ key, total }) => (
          <li key={key} className="flex min-w-0 items-center gap-1.5">
            <svg width="12" height="12" aria-hidden className="shrink-0">
              <rect x="0.5" y="0.5" width="11" height="11" rx="1.5" {...paint(key, colours)} />
            </svg>
            <span className="max-w-48 truncate">{named(key)}</span>
            <span className="text-muted">{amount(total)}</span>
          </li>
        ))}
      </ul>
    </figure>
  );
}

interface DayProps {
  day: string;
  place: number;
  stacks: readonly Stack[];
  top: number;
  colours: Map<string, number>;
  named: (key: string) => string;
}

function Day({ day, place, stacks, top, colours, named }: DayProps) {
  let above = HEIGHT;
  return (
    <g data-day={day}>
      {stacks.map(({ key, values }) => {
        const value = values[place] ?? 0;
        if (value <= 0) return null;
        const height = (HEIGHT * value) / top;
        above -= height;
        return (
          <rect key={key} x={place * STEP + (STEP - BAR) / 2} y={above} width={BAR} height={height} vectorEffect="non-scaling-stroke" {...paint(key, colours)}>
            <title>{`${day}, ${named(key)}: ${amount(value)}`}</title>
          </rect>
        );
      })}
    </g>
  );
}

function paint(key: string, colours: Map<string, number>) {
  if (key === OTHERS) return { fill: 'var(--line)', stroke: 'var(--line-strong)' };
  const hue = colours.get(`use ${key}`) ?? 0;
  return { fill: `oklch(var(--hue-edge) 0.09 ${hue})`, stroke: `oklch(var(--hue-light) var(--hue-chroma) ${hue})` };
}
