/** Many accounts at once from a CSV file: what each line would do, as the server says while it is written, then all or nothing. */

import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../api/client';
import type { Batch } from '../api/types';
import { CommandLine } from '../components/Copy';
import { Tick } from '../components/FormDialog';
import { Fault, Skeleton } from '../components/Notices';
import { PeopleTabs } from '../components/PeopleTabs';
import { useSettled } from '../components/useSettled';
import { useTitle } from '../components/useTitle';
import { actionWord, appliable, counts, linksText, unsendable } from '../lib/people';
import { people as texts } from '../texts/english/people';
import { fill, filled } from '../texts/fill';

const CSV = { 'Content-Type': 'text/csv' };
const EXAMPLE = 'name,role,groups,email,disabled\nada,user,vision,ada@example.org,no\n';

const send = (text: string, query: { dryRun?: boolean; links?: boolean }, signal?: AbortSignal) =>
  call<Batch>('/users-batch', { method: 'POST', text, headers: CSV, query, signal });

export function UsersBatch() {
  const client = useQueryClient();
  const [text, setText] = useState('');
  const [links, setLinks] = useState(true);
  const settled = useSettled(text);
  useTitle(texts.manyUsersOnce);
  const wrong = unsendable(text);
  const trial = useQuery({
    queryKey: ['users', 'batch', settled],
    queryFn: ({ signal }) => send(settled, { dryRun: true }, signal),
    enabled: !unsendable(settled),
    placeholderData: keepPreviousData,
    retry: false,
    gcTime: 0,
  });
  const apply = useMutation({
    mutationFn: () => send(text, { links: links || undefined }),
    onSuccess: async () => {
      setText('');
      await client.invalidateQueries({ predicate: ({ queryKey: [kind] }) => kind === 'users' || kind === 'groups' });
    },
  });
  const current = !wrong && settled === text && !trial.isPlaceholderData ? trial.data : undefined;
  return (
    <section className="pt-3">
      <h1 className="sr-only">{texts.manyUsersOnce}</h1>
      <PeopleTabs />
      <div className="grid grid-cols-[minmax(0,1fr)] gap-x-8 gap-y-6 pt-4 lg:grid-cols-2">
        <form
          className="min-w-0 space-y-3"
          onSubmit={(event) => {
            event.preventDefault();
            if (current && appliable(current)) apply.mutate();
          }}
        >
          <Explained onExample={() => setText(EXAMPLE)} />
          <FileChoice onText={setText} />
          <label className="block space-y-1">
            <span className="label">{texts.listCsv}</span>
            <textarea className="field !h-72 py-2 font-mono text-xs leading-5" spellCheck={false} value={text} onChange={(event) => setText(event.target.value)} placeholder={EXAMPLE} />
          </label>
          <Tick checked={links} onChange={setLinks}>
            {texts.makeSignLink}
          </Tick>
          <div className="flex flex-wrap items-center gap-2">
            <button type="submit" className="btn btn-main !h-9" disabled={!current || !appliable(current) || apply.isPending}>
              {texts.applyTheList}
            </button>
            <span className="grow" />
            <CommandLine line="corral users import FILE --dry-run" />
          </div>
        </form>
        <div className="min-w-0">
          {apply.error && <Fault error={apply.error} />}
          {apply.data && !text && <Done batch={apply.data} />}
          {text && wrong && <p className="text-sm text-muted">{wrong}</p>}
          {!wrong && trial.error && <Fault error={trial.error} />}
          {!wrong && trial.isPending && <Skeleton rows={4} />}
          {!wrong && trial.data && !trial.error && <Preview batch={trial.data} />}
          {!text && !apply.data && <p className="text-sm text-muted">{texts.whatEachLine}</p>}
        </div>
      </div>
    </section>
  );
}

/** Columns of a list, and how a cell changes the groups that an account has. */
const [NAME, ROLE, GROUPS, EMAIL, DISABLED, CHANGE] = ['name', 'role', 'groups', 'email', 'disabled', '+a -b'];

function Explained({ onExample }: { onExample: () => void }) {
  return (
    <p className="max-w-[65ch] text-sm text-muted">
      {filled(texts.firstLineNames, { name: <code>{NAME}</code>, role: <code>{ROLE}</code>, groups: <code>{GROUPS}</code>, email: <code>{EMAIL}</code>, disabled: <code>{DISABLED}</code>, change: <code>{CHANGE}</code>, example: <button type="button" className="link" onClick={onExample}>
        {texts.beginExample}
      </button> })}
    </p>
  );
}

function FileChoice({ onText }: { onText: (text: string) => void }) {
  return (
    <label className="block space-y-1">
      <span className="label">{texts.fromAFile}</span>
      <input
        type="file"
        accept=".csv,text/csv"
        className="block w-full text-sm text-muted file:mr-3 file:h-8 file:cursor-pointer file:rounded-[4px] file:border file:border-line-strong file:bg-raised file:px-3 file:text-text"
        onChange={(event) => {
          void event.target.files?.[0]?.text().then(onText);
          event.target.value = '';
        }}
      />
    </label>
  );
}

function Preview({ batch }: { batch: Batch }) {
  return (
    <>
      <p role="status" className="pb-1 text-sm font-medium">
        {counts(batch) || texts.listHasLines}
        {batch.lines.some((line) => line.action === 'refused') && <span className="font-normal text-fail"> {texts.nothingAppliedUntil}</span>}
      </p>
      <Lines batch={batch} />
    </>
  );
}

function Lines({ batch }: { batch: Batch }) {
  return (
    <div className="max-h-[70vh] overflow-y-auto" tabIndex={0} role="region" aria-label={texts.whatEachLineDoes}>
      <table className="grid-table">
        <thead>
          <tr>
            <th className="num">{texts.line}</th>
            <th>{texts.name}</th>
            <th>{texts.is}</th>
            <th>{texts.whatChangesWhy}</th>
          </tr>
        </thead>
        <tbody>
          {batch.lines.map((line) => (
            <tr key={line.line} data-line={line.line}>
              <td className="num text-muted">{line.line}</td>
              <td className="max-w-40 truncate font-medium">{line.name}</td>
              <td className={line.action === 'refused' ? 'text-fail' : line.action === 'unchanged' ? 'text-muted' : ''}>{actionWord(line.action)}</td>
              <td className={line.action === 'refused' ? 'text-fail' : 'text-muted'}>{line.message || line.changes.join('; ') || '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Done({ batch }: { batch: Batch }) {
  const text = linksText(batch, location.origin);
  return (
    <div role="status" className="border-l-[3px] border-accent bg-accent-ground px-4 py-3 text-sm">
      <p className="font-medium">{fill(texts.listApplied, { batch: counts(batch) })}</p>
      {text && (
        <>
          <p className="py-1">{texts.timeSignLinks}</p>
          <pre tabIndex={0} aria-label={texts.signInLinks} className="max-h-60 overflow-auto font-mono text-xs">
            {text}
          </pre>
          <a className="link" download="sign-in-links.csv" href={`data:text/csv;charset=utf-8,${encodeURIComponent(text)}`}>
            {texts.saveThemFile}
          </a>
        </>
      )}
    </div>
  );
}
