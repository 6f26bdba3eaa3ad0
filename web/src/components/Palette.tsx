/** The command palette: one field that leads to pages, jobs, queues and nodes, and acts on a job. */

import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useLocation, useNavigate } from '@tanstack/react-router';
import { useEffect, useId, useRef, useState, type KeyboardEvent } from 'react';
import * as ask from '../api/queries';
import type { JobSummary } from '../api/types';
import { called, doesOf, fits, places, read, VERBS, wordOf, type Verb } from '../lib/palette';
import { pages, palette as texts } from '../texts/english/palette';
import { shared } from '../texts/english/shared';
import { counted, fill, textOf } from '../texts/fill';
import { Dialog } from './Dialog';
import { Fault } from './Notices';
import { Glyph } from './Status';
import { useSettled } from './useSettled';

interface Item {
  key: string;
  group: string;
  label: string;
  hint?: string;
  state?: JobSummary['state'];
  run: () => void;
}

interface Props {
  onClose: () => void;
  /** Opens the window that asks about a change of a job. */
  onAct: (action: string, job: string) => void;
}

/** Rows of queues and of nodes at most. */
const MOST = 6;

export default function Palette({ onClose, onAct }: Props) {
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const list = useId();
  const { items, pending, error } = useItems(text, setText, onClose, onAct);
  const chosen = Math.min(at, items.length - 1);
  const row = useRef<HTMLDivElement>(null);
  useEffect(() => {
    row.current?.scrollIntoView({ block: 'nearest' });
  }, [chosen, text]);
  const typed = (next: string) => {
    setText(next);
    setAt(0);
  };
  const keys = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (step) setAt(Math.max(0, Math.min(items.length - 1, chosen + step)));
    else if (event.key === 'Enter') items[chosen]?.run();
    else return;
    event.preventDefault();
    if (event.key === 'Enter') setAt(0);
  };
  const groups = [...new Set(items.map(({ group }) => group))];
  return (
    <Dialog title={texts.title} onClose={onClose}>
      <input
        className="field"
        data-first
        role="combobox"
        aria-label={texts.command}
        aria-expanded={items.length > 0}
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={items.length > 0 ? `${list}-${chosen}` : undefined}
        placeholder={texts.hint}
        autoComplete="off"
        spellCheck={false}
        maxLength={200}
        value={text}
        onChange={(event) => typed(event.target.value)}
        onKeyDown={keys}
      />
      {error && <Fault error={error} />}
      <div className="mt-3 h-[min(24rem,50dvh)]">
        <div id={list} role="listbox" aria-label={texts.results} tabIndex={-1} className="max-h-full overflow-y-auto">
          {groups.map((group) => (
            <div key={group} role="group" aria-label={group} className="pb-2">
              <p aria-hidden className="label px-2 py-1">{group}</p>
              {items.map((item, place) =>
                item.group !== group ? null : (
                  <div
                    key={item.key}
                    ref={place === chosen ? row : undefined}
                    id={`${list}-${place}`}
                    role="option"
                    aria-selected={place === chosen}
                    onClick={item.run}
                    onPointerMove={() => setAt(place)}
                    className="flex cursor-pointer items-baseline gap-3 rounded-[3px] px-2 py-1 text-sm aria-selected:bg-accent-ground"
                  >
                    <span className="min-w-0 grow truncate">
                      {item.state && <span className="pr-2"><Glyph state={item.state} size={10} /></span>}
                      {item.label}
                    </span>
                    {item.hint && <span className="max-w-[55%] truncate text-xs text-muted">{item.hint}</span>}
                  </div>
                ),
              )}
            </div>
          ))}
        </div>
        {items.length === 0 && !pending && (
          <p className="px-2 py-3 text-sm text-muted">
            {isVerb(text) ? texts.noJob : texts.nothing}
          </p>
        )}
      </div>
      <p role="status" className="sr-only">
        {pending ? texts.looking : counted(texts.found, items.length)}
      </p>
    </Dialog>
  );
}

/** Whether a text is a verb alone, which looks at the reader's own jobs. */
const isVerb = (text: string) => read(text).verb !== null && read(text).rest === '';

/** What the text stands for, in the order in which it is shown. */
function useItems(text: string, setText: (text: string) => void, close: () => void, onAct: Props['onAct']) {
  const { verb, rest } = read(text);
  const wanted = useSettled(rest);
  const me = useQuery(ask.me).data;
  const here = useHere();
  const found = useQuery(ask.jobsCalled(wanted, verb && !wanted ? (me?.user ?? '') : '', verb !== null || wanted !== ''));
  const queues = useQuery(ask.queues).data?.items ?? [];
  const nodes = useInfiniteQuery(ask.nodes).data?.pages.flatMap((page) => page.items) ?? [];
  const go = useGo(close);
  const act = useAct(go, close, onAct);
  const pending = wanted !== rest || found.isFetching;
  const jobs = (found.data?.items ?? []).filter((job) => called(job, rest) && (verb?.fits?.(job) ?? true));
  const jobRow = (of: Verb, job: JobSummary, group: string): Item => ({
    key: `${of.name} ${job.id}`,
    group,
    label: of.name === 'open' ? job.name : fill(texts.act, { verb: wordOf(of), job: job.name }),
    hint: fill(texts.of, { user: job.user, state: textOf(shared.states, job.state) }),
    state: job.state,
    run: () => act(of.name, job.id),
  });
  if (verb) {
    const mine = here && !rest && (verb.fits?.(here) ?? true) ? [here] : [];
    const others = jobs.filter(({ id }) => id !== mine[0]?.id);
    return { items: [...mine, ...others].map((job) => jobRow(verb, job, fill(texts.which, { verb: wordOf(verb) }))), pending, error: found.error };
  }
  const open = VERBS[0]!;
  const items: Item[] = [
    ...(here ? VERBS.filter((each) => each.name !== 'open' && (each.fits?.(here) ?? true) && fits(wordOf(each), rest)) : []).map((each): Item => ({
      key: `here ${each.name}`, group: fill(texts.here, { job: here?.name ?? '' }), label: wordOf(each), hint: doesOf(each), run: () => act(each.name, here?.id ?? ''),
    })),
    ...places(rest, me?.role === 'admin').map((each): Item => ({ key: each.to, group: texts.pages, label: pages[each.to].name, run: () => go(each.to) })),
    ...(rest ? jobs : []).map((job) => jobRow(open, job, texts.jobs)),
    ...(rest ? queues.filter(({ name }) => fits(name, rest)).slice(0, MOST) : []).map((each): Item => ({
      key: `queue ${each.name}`, group: texts.queues, label: each.name, run: () => go('/queues', { queue: each.name }),
    })),
    ...(rest ? nodes.filter(({ name }) => fits(name, rest)).slice(0, MOST) : []).map((each): Item => ({
      key: `node ${each.name}`, group: texts.nodes, label: each.name, run: () => go('/nodes', { node: each.name }),
    })),
    ...VERBS.filter((each) => fits(wordOf(each), rest)).map((each): Item => ({
      key: `verb ${each.name}`, group: texts.withJob, label: fill(texts.begin, { verb: wordOf(each) }), hint: doesOf(each), run: () => setText(`${wordOf(each)} `),
    })),
  ];
  return { items, pending, error: found.error };
}

/** The job whose page is open. */
function useHere() {
  const ref = useLocation({ select: ({ pathname }) => /^\/jobs\/([^/]+)/.exec(pathname)?.[1] ?? '' });
  return useQuery({ ...ask.job(decodeURIComponent(ref)), enabled: ref !== '' }).data;
}

function useGo(close: () => void) {
  const navigate = useNavigate();
  return (to: string, search: Record<string, string> = {}) => {
    close();
    void navigate({ to, search });
  };
}

/** Does a verb with a job: leads to a part of its page, or opens the window that asks. */
function useAct(go: (to: string, search?: Record<string, string>) => void, close: () => void, onAct: Props['onAct']) {
  return (verb: string, job: string) => {
    if (verb === 'compare') return go('/compare', { job });
    if (verb === 'clone') return go('/submit', { from: job });
    if (verb === 'open' || verb === 'explain') return go(`/jobs/${job}`);
    if (['log', 'events', 'document', 'terminal'].includes(verb)) return go(`/jobs/${job}`, { tab: verb });
    close();
    onAct(verb, job);
  };
}
