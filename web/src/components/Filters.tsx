/** The filters of the job list; each is a part of the page's address. */

import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import * as ask from '../api/queries';
import type { JobFilter } from '../api/queries';
import { JOB_STATES } from '../api/types';
import { list as texts } from '../texts/english/list';
import { shared } from '../texts/english/shared';
import { fill, textOf } from '../texts/fill';
import { SavedFilters } from './SavedFilters';
import { SearchField } from './SearchField';
import { Glyph } from './Status';

interface Props {
  filter: JobFilter;
  onChange: (filter: JobFilter) => void;
}

export function Filters({ filter, onChange }: Props) {
  const { data: queues } = useQuery(ask.queues);
  const { data: me } = useQuery(ask.me);
  const chosen = new Set(filter.state?.split(',').filter(Boolean));
  const toggle = (state: string) => {
    const next = new Set(chosen);
    if (!next.delete(state)) next.add(state);
    onChange({ ...filter, state: JOB_STATES.filter((each) => next.has(each)).join(',') || undefined });
  };
  return (
    <div className="flex flex-wrap items-center gap-2 py-2.5" role="search">
      <Search value={filter.q ?? ''} onChange={(q) => onChange({ ...filter, q: q || undefined })} />
      <div role="group" aria-label={texts.state} className="flex flex-wrap gap-1">
        {JOB_STATES.map((state) => (
          <button
            key={state}
            type="button"
            aria-pressed={chosen.has(state)}
            onClick={() => toggle(state)}
            className="inline-flex h-7 items-center gap-1.5 rounded-[4px] border border-transparent px-2 text-xs text-muted hover:text-text aria-pressed:border-line-strong aria-pressed:bg-raised aria-pressed:font-medium aria-pressed:text-text"
          >
            <Glyph state={state} size={10} />
            {textOf(shared.states, state)}
          </button>
        ))}
      </div>
      {filter.tag && (
        <button type="button" className="btn border-accent text-accent" onClick={() => onChange({ ...filter, tag: undefined })} title={texts.anyTags}>
          <span className="max-w-40 truncate">{filter.tag}</span> ✕
        </button>
      )}
      {filter.order && (
        <button type="button" className="btn border-accent text-accent" onClick={() => onChange({ ...filter, order: undefined })} title={texts.newestFirstAgain}>
          {fill(texts.inOrder, { order: textOf(texts.orders, filter.order) })}
        </button>
      )}
      <span className="grow max-sm:hidden" />
      <SavedFilters filter={filter} onChange={onChange} />
      <select
        aria-label={texts.group}
        className="field !w-auto"
        value={filter.group ?? ''}
        onChange={(event) => onChange({ ...filter, group: event.target.value || undefined })}
      >
        <option value="">{texts.arraysTogether}</option>
        <option value="sweep">{texts.bySweep}</option>
        <option value="user">{texts.byUser}</option>
      </select>
      <select
        aria-label={texts.priority}
        className="field !w-auto"
        value={filter.priority ?? ''}
        onChange={(event) => onChange({ ...filter, priority: event.target.value || undefined })}
      >
        <option value="">{texts.anyPriority}</option>
        <option value="crit">{texts.critAbove}</option>
        <option value="prod">{texts.prodAbove}</option>
        <option value="test">{texts.testAbove}</option>
        <option value="oppo">{texts.oppo}</option>
      </select>
      <select
        aria-label={texts.queue}
        className="field !w-auto"
        value={filter.queue ?? ''}
        onChange={(event) => onChange({ ...filter, queue: event.target.value || undefined })}
      >
        <option value="">{texts.allQueues}</option>
        {queues?.items.map((queue) => (
          <option key={queue.name}>{queue.name}</option>
        ))}
      </select>
      <button
        type="button"
        className="btn aria-pressed:border-accent aria-pressed:text-accent"
        aria-pressed={!!filter.user && filter.user === me?.user}
        onClick={() => onChange({ ...filter, user: filter.user ? undefined : me?.user })}
      >
        {filter.user && filter.user !== me?.user ? `${filter.user} ✕` : texts.mine}
      </button>
    </div>
  );
}

const TYPING_MS = 200;

function Search({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(value);
  const sent = useRef(value);
  useEffect(() => {
    if (value !== sent.current) setText(value);
    sent.current = value;
  }, [value]);
  useEffect(() => {
    if (text === sent.current) return;
    const timer = setTimeout(() => {
      sent.current = text;
      onChange(text);
    }, TYPING_MS);
    return () => clearTimeout(timer);
  });
  return <SearchField label={texts.searchJobsName} hint={texts.searchNameId} width="!w-60" value={text} onChange={setText} />;
}
