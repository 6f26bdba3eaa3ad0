/** Which columns the list of jobs has, and its file: what a reader sets up once for this screen. */

import { useState } from 'react';
import * as ask from '../api/queries';
import type { JobFilter } from '../api/queries';
import { hand } from '../lib/download';
import { COLUMNS, jobsCsv, readHidden, writeHidden, type Column } from '../lib/joblist';
import { counts } from '../texts/english/counts';
import { list as texts } from '../texts/english/list';
import { counted, fill } from '../texts/fill';
import { Fault } from './Notices';

const KEY = 'corral.columns';

export function useHidden(): [ReadonlySet<Column>, (column: Column) => void] {
  const [hidden, setHidden] = useState(() => readHidden(localStorage.getItem(KEY)));
  const toggle = (column: Column) => {
    const next = new Set(hidden);
    if (!next.delete(column)) next.add(column);
    localStorage.setItem(KEY, writeHidden(next));
    setHidden(next);
  };
  return [hidden, toggle];
}

export function ColumnChoice({ hidden, onToggle }: { hidden: ReadonlySet<Column>; onToggle: (column: Column) => void }) {
  const [open, setOpen] = useState(false);
  return (
    <div
      className="relative max-sm:hidden"
      onKeyDown={(event) => event.key === 'Escape' && setOpen(false)}
      onBlur={(event) => !event.currentTarget.contains(event.relatedTarget) && setOpen(false)}
    >
      <button type="button" className="btn-bare" aria-expanded={open} onClick={() => setOpen(!open)}>
        {texts.columns}
      </button>
      {open && (
        <fieldset tabIndex={-1} className="absolute right-0 bottom-full z-30 mb-1 w-44 rounded-[6px] border border-line-strong bg-raised p-3 text-sm shadow-xl">
          <legend className="sr-only">{texts.columns}</legend>
          {COLUMNS.map((each) => (
            <label key={each} className="flex items-center gap-2 py-0.5">
              <input type="checkbox" checked={!hidden.has(each)} onChange={() => onToggle(each)} />
              {texts[each]}
            </label>
          ))}
        </fieldset>
      )}
    </div>
  );
}

/** Gives all jobs that match to the browser as a file, and not only those that are shown. */
export function Export({ filter }: { filter: JobFilter }) {
  const [state, setState] = useState<'ready' | 'busy' | Error>('ready');
  const [said, setSaid] = useState('');
  const go = async () => {
    setState('busy');
    setSaid('');
    try {
      const { items, cut } = await ask.everyJob(filter);
      hand(new Blob([jobsCsv(items)], { type: 'text/csv' }), 'jobs.csv');
      setSaid(cut ? fill(texts.fileCut, { jobs: counted(counts.jobs, items.length) }) : '');
      setState('ready');
    } catch (error) {
      setState(error instanceof Error ? error : new Error(texts.listCouldNot));
    }
  };
  return (
    <>
      <button type="button" className="btn-bare" disabled={state === 'busy'} onClick={() => void go()}>
        {state === 'busy' ? texts.reading : texts.exportCsv}
      </button>
      {said && (
        <span role="status" className="text-xs text-wait">
          {said}
        </span>
      )}
      {state instanceof Error && <Fault error={state} retry={() => void go()} />}
    </>
  );
}
