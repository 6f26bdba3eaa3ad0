/** The filters of the list of jobs that the reader saved under names; the server keeps them. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useId, useRef, useState } from 'react';
import { call, part } from '../api/client';
import * as ask from '../api/queries';
import type { JobFilter } from '../api/queries';
import { filterOf, savedOf } from '../lib/joblist';
import { list as texts } from '../texts/english/list';
import { fill } from '../texts/fill';
import { Fault } from './Notices';

export function SavedFilters({ filter, onChange }: { filter: JobFilter; onChange: (filter: JobFilter) => void }) {
  const [open, setOpen] = useState(false);
  const panel = useId();
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const press = (event: Event) => !root.current?.contains(event.target as Node) && setOpen(false);
    document.addEventListener('pointerdown', press);
    return () => document.removeEventListener('pointerdown', press);
  }, []);
  return (
    <div
      ref={root}
      className="relative"
      onKeyDown={(event) => event.key === 'Escape' && setOpen(false)}
      onBlur={(event) => event.relatedTarget && !event.currentTarget.contains(event.relatedTarget) && setOpen(false)}
    >
      <button type="button" className="btn" aria-expanded={open} aria-controls={panel} onClick={() => setOpen(!open)}>
        {texts.saved}
      </button>
      {open && (
        <div id={panel} role="group" aria-label={texts.savedFilters} tabIndex={-1} className="absolute left-0 z-30 mt-1 w-72 rounded-[6px] border border-line-strong bg-raised p-3 text-sm shadow-xl sm:right-0 sm:left-auto">
          <Saved
            filter={filter}
            onChoose={(next) => {
              setOpen(false);
              onChange(next);
            }}
          />
        </div>
      )}
    </div>
  );
}

function Saved({ filter, onChoose }: { filter: JobFilter; onChoose: (filter: JobFilter) => void }) {
  const client = useQueryClient();
  const [name, setName] = useState('');
  const field = useRef<HTMLInputElement>(null);
  const { data, error } = useQuery(ask.savedFilters);
  const done = () => client.invalidateQueries({ queryKey: ask.savedFilters.queryKey });
  const save = useMutation({
    mutationFn: () => call('/account/filters', { method: 'POST', json: savedOf(name.trim(), filter) }),
    onSuccess: async () => {
      setName('');
      await done();
    },
  });
  const forget = useMutation({
    mutationFn: (of: string) => call(`/account/filters/${part(of)}`, { method: 'DELETE' }),
    onSuccess: async () => {
      field.current?.focus(); // the button that had it goes
      await done();
    },
  });
  const fault = error ?? save.error ?? forget.error;
  const items = data?.items ?? [];
  const empty = !Object.values(filter).some(Boolean);
  return (
    <>
      {items.length === 0 && <p className="pb-2 text-muted">{texts.noFilterSaved}</p>}
      <ul>
        {items.map((each) => (
          <li key={each.name} className="flex items-center gap-1">
            <button type="button" className="min-w-0 grow truncate rounded-[3px] px-1 py-1 text-left hover:bg-sunken" onClick={() => onChoose(filterOf(each))}>
              {each.name}
            </button>
            <button type="button" className="btn-bare" aria-label={fill(texts.deleteFilter, { name: each.name })} onClick={() => forget.mutate(each.name)}>
              ✕
            </button>
          </li>
        ))}
      </ul>
      <form
        className="mt-2 flex gap-2 border-t border-line pt-3"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() && !empty && !save.isPending) save.mutate();
        }}
      >
        <input ref={field} className="field" aria-label={texts.nameFilter} placeholder={texts.nameThis} maxLength={60} value={name} onChange={(event) => setName(event.target.value)} autoComplete="off" />
        <button type="submit" className="btn" disabled={!name.trim() || empty || save.isPending}>
          {texts.save}
        </button>
      </form>
      {empty && <p className="pt-2 text-xs text-muted">{texts.listNoFilter}</p>}
      {fault && <Fault error={fault} />}
    </>
  );
}
