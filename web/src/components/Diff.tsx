/** Lines that differ, by sign and word as well as by colour. */

import { counted, diffRows, type DiffRow } from '../lib/diff';
import { difference as texts } from '../texts/english/difference';
import { filled, number } from '../texts/fill';

const SIGN = { same: ' ', gone: '−', came: '+', gap: ' ' } as const;
const COLOUR = {
  same: '',
  gone: 'bg-fail-ground text-fail',
  came: 'bg-accent-ground text-accent',
  gap: 'text-faint',
} as const;

/** `label` tells it from others on the page. */
export function Diff({ diff, label = texts.label }: { diff: string; label?: string }) {
  const rows = diffRows(diff);
  if (rows.length === 0) return <p className="py-3 text-sm text-muted">{texts.none}</p>;
  const { came, gone } = counted(rows);
  return (
    <>
      <p className="pb-2 text-xs text-muted">
        {filled(texts.lines, { came: <span className="text-accent">+{number(came)}</span>, gone: <span className="text-fail">−{number(gone)}</span> })}
      </p>
      <div className="overflow-x-auto border border-line bg-sunken py-1 font-mono text-xs leading-5" role="region" aria-label={label} tabIndex={0}>
        <div className="w-max min-w-full">
          {rows.map((row, at) => (
            <Line key={at} row={row} />
          ))}
        </div>
      </div>
    </>
  );
}

function Line({ row }: { row: DiffRow }) {
  return (
    <div className={`flex whitespace-pre ${COLOUR[row.kind]}`} data-diff={row.kind}>
      <Number at={row.before} />
      <Number at={row.after} />
      <span aria-hidden className="w-5 shrink-0 text-center select-none">
        {SIGN[row.kind]}
      </span>
      <span className="sr-only">{row.kind === 'gone' ? texts.removed : row.kind === 'came' ? texts.added : ''}</span>
      <span className="pr-4">{row.text}</span>
    </div>
  );
}

function Number({ at }: { at: number | null }) {
  return (
    <span aria-hidden className="w-9 shrink-0 pr-1.5 text-right text-muted select-none max-sm:hidden">
      {at}
    </span>
  );
}
