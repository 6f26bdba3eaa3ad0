/** Lines that differ, by sign and word as well as by colour. */

import { counted, diffRows, type DiffRow } from '../lib/diff';

const SIGN = { same: ' ', gone: '−', came: '+', gap: ' ' } as const;
const COLOUR = {
  same: '',
  gone: 'bg-fail-ground text-fail',
  came: 'bg-accent-ground text-accent',
  gap: 'text-faint',
} as const;
const WORD = { same: '', gone: 'removed: ', came: 'added: ', gap: '' } as const;

/** `label` tells it from others on the page. */
export function Diff({ diff, label = 'Difference' }: { diff: string; label?: string }) {
  const rows = diffRows(diff);
  if (rows.length === 0) return <p className="py-3 text-sm text-muted">There is no difference.</p>;
  const { came, gone } = counted(rows);
  return (
    <>
      <p className="pb-2 text-xs text-muted">
        <span className="text-accent">+{came}</span> <span className="text-fail">−{gone}</span> lines
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
      <span className="sr-only">{WORD[row.kind]}</span>
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
