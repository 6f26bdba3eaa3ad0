/** What queues divide, as one strip: a divider between two neighbours is dragged, or moved by the arrow keys. */

import { useRef, type KeyboardEvent, type PointerEvent } from 'react';
import { moved, shown, type Measure } from '../lib/sharing';
import { queues as texts } from '../texts/english/queues';
import { fill } from '../texts/fill';

/** The width that every part keeps, so that dividers never lie on each other, in pixels. */
const LEAST_WIDTH = 30;
/** How many steps Page Up and Page Down move. */
const PAGE = 10;

export interface Part {
  /** A queue; '' is what is assigned to none. */
  queue: string;
  value: number;
  least: number;
}

interface Props {
  label: string;
  measure: Measure;
  parts: readonly Part[];
  onMove: (values: number[]) => void;
}

const named = (part: Part | undefined) => part?.queue || texts.notAssigned;

export function ShareStrip({ label, measure, parts, onMove }: Props) {
  const strip = useRef<HTMLDivElement>(null);
  const drag = useRef<{ x: number; values: number[] }>(null);
  const values = parts.map((part) => part.value);
  const floors = parts.map((part) => part.least);
  const sum = values.reduce((a, b) => a + b, 0);
  const { step } = measure;

  const begin = (event: PointerEvent<HTMLElement>) => {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    drag.current = { x: event.clientX, values };
  };
  const go = (event: PointerEvent<HTMLElement>, at: number) => {
    if (!drag.current || !strip.current) return;
    const wide = Math.max(1, strip.current.clientWidth - parts.length * LEAST_WIDTH);
    const by = Math.round(((event.clientX - drag.current.x) / wide) * (sum / step)) * step;
    onMove(moved(drag.current.values, floors, at, by));
  };
  const restore = () => {
    if (drag.current) onMove(drag.current.values);
    drag.current = null;
  };
  const press = (event: KeyboardEvent<HTMLElement>, at: number) => {
    const by: Record<string, number> = {
      ArrowRight: step, ArrowUp: step, ArrowLeft: -step, ArrowDown: -step,
      PageUp: PAGE * step, PageDown: -PAGE * step, Home: -Infinity, End: Infinity,
    };
    if (event.key === 'Escape' && drag.current) restore();
    else if (by[event.key] !== undefined && !event.ctrlKey && !event.altKey && !event.metaKey) onMove(moved(values, floors, at, by[event.key]!));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div className="overflow-x-auto px-3 py-1">
      <div ref={strip} role="group" aria-label={label} className="flex h-[40px]" style={{ minWidth: parts.length * LEAST_WIDTH }}>
        {parts.map((part, at) => (
          <div key={part.queue} className="relative flex min-w-0" style={{ flexGrow: sum > 0 ? (part.value / sum) * 1000 : 1, flexBasis: LEAST_WIDTH }}>
            <div
              data-part={part.queue}
              title={`${named(part)}: ${shown(part.value)}`}
              className={`flex w-full min-w-0 items-center border px-1.5 text-xs ${part.queue ? 'border-accent bg-accent-ground' : 'border-dashed border-line-strong text-muted'}`}
            >
              <span aria-hidden className="truncate">
                {named(part)}
              </span>
            </div>
            {at < parts.length - 1 && (
              <div
                role="slider"
                tabIndex={0}
                aria-orientation="horizontal"
                aria-label={fill(texts.betweenAnd, { part: named(part), parts: named(parts[at + 1]) })}
                aria-valuemin={part.least}
                aria-valuemax={part.value + Math.max(0, parts[at + 1]!.value - parts[at + 1]!.least)}
                aria-valuenow={part.value}
                aria-valuetext={`${named(part)} ${shown(part.value)}, ${named(parts[at + 1])} ${shown(parts[at + 1]!.value)}`}
                onKeyDown={(event) => press(event, at)}
                onPointerDown={begin}
                onPointerMove={(event) => go(event, at)}
                onPointerUp={() => (drag.current = null)}
                onPointerCancel={restore}
                className="absolute inset-y-0 -right-[12px] z-10 flex w-[24px] cursor-col-resize touch-none justify-center"
              >
                <span aria-hidden className="h-full w-[5px] rounded-[2px] border border-ground bg-accent" />
              </div>
            )}
          </div>
        ))}
      </div>
    </div>
  );
}
