/** The audit log, for administrators: who did what, by which rule, and what was refused. */

import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { FormEvent, ReactNode } from 'react';
import * as ask from '../api/audit';
import { ApiError } from '../api/client';
import type { AuditRecord } from '../api/types';
import { CommandLine } from '../components/Copy';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { PeopleTabs } from '../components/PeopleTabs';
import { Ago } from '../components/Time';
import { useTitle } from '../components/useTitle';
import { auditCsv, auditLine, DAYS, detailWords, jobOf, type Wanted } from '../lib/audit';
import { hand } from '../lib/download';
import { audit as texts } from '../texts/english/audit';
import { counted, fill } from '../texts/fill';

const route = getRouteApi('/frame/audit');
type Choose = (change: Wanted) => void;

export function Audit() {
  const wanted: Wanted = route.useSearch();
  const navigate = route.useNavigate();
  const list = useInfiniteQuery(ask.audit(wanted));
  const lines = list.data?.pages.flatMap((page) => page.items) ?? [];
  const choose: Choose = (change) => void navigate({ search: (now) => ({ ...now, ...change }) });
  useTitle(texts.auditLog);
  if (list.error instanceof ApiError && list.error.status === 403) return <Fault error={list.error} />;
  return (
    <section className="pt-3">
      <h1 className="sr-only">{texts.auditLog}</h1>
      <PeopleTabs />
      <Filters key={[wanted.by, wanted.action, wanted.resource].join(' ')} wanted={wanted} onChoose={choose} />
      {list.error && !list.data && <Fault error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && !list.error && <Skeleton rows={8} />}
      {list.data && lines.length === 0 && (
        <Empty title={texts.thereSuchLine} line="corral audit">
          {texts.whatPeopleChange}
        </Empty>
      )}
      {lines.length > 0 && <Lines lines={lines} onChoose={choose} />}
      <div className="flex flex-wrap items-center gap-3 pt-3">
        {list.hasNextPage && (
          <button type="button" className="btn" onClick={() => void list.fetchNextPage()} disabled={list.isFetchingNextPage}>
            {texts.showEarlierLines}
          </button>
        )}
        <button type="button" className="btn" disabled={lines.length === 0} onClick={() => hand(new Blob([auditCsv(lines)], { type: 'text/csv;charset=utf-8' }), 'audit.csv')}>
          {texts.theseLinesCsv}
        </button>
        <span className="grow" />
        <CommandLine line={auditLine(wanted)} />
      </div>
    </section>
  );
}

function Filters({ wanted, onChoose }: { wanted: Wanted; onChoose: Choose }) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const told = new FormData(event.currentTarget);
    const text = (name: string) => String(told.get(name) ?? '').trim() || undefined;
    onChoose({ by: text('by'), action: text('action'), resource: text('resource') });
  };
  return (
    <form role="search" className="flex flex-wrap items-end gap-3 py-2.5" onSubmit={submit}>
      <TextFilter name="by" label={texts.by} hint={texts.ada} value={wanted.by} />
      <TextFilter name="action" label={texts.action} hint={texts.jobStopJob} value={wanted.action} />
      <TextFilter name="resource" label={texts.resource} hint={texts.userAdaUser} value={wanted.resource} />
      <button type="submit" className="btn">
        {texts.filter}
      </button>
      <div role="group" aria-label={texts.howFarLook} className="flex gap-1">
        {[undefined, ...DAYS].map((each) => (
          <button key={each ?? ''} type="button" className="btn aria-pressed:border-accent aria-pressed:text-accent" aria-pressed={each === wanted.days} onClick={() => onChoose({ days: each })}>
            {each ? counted(texts.d, Number(each)) : texts.all}
          </button>
        ))}
      </div>
      <button type="button" className="btn aria-pressed:border-accent aria-pressed:text-accent" aria-pressed={Boolean(wanted.refused)} onClick={() => onChoose({ refused: wanted.refused ? undefined : '1' })}>
        {texts.onlyRefused}
      </button>
    </form>
  );
}

function TextFilter({ name, label, hint, value = '' }: { name: string; label: string; hint: string; value?: string }) {
  return (
    <label className="flex flex-col gap-1">
      <span className="label">{label}</span>
      <input name={name} className="field !w-44" placeholder={hint} defaultValue={value} maxLength={100} spellCheck={false} autoComplete="off" />
    </label>
  );
}

function Lines({ lines, onChoose }: { lines: readonly AuditRecord[]; onChoose: Choose }) {
  return (
    <table className="grid-table [&_td]:!align-top" aria-label={texts.auditLog}>
      <thead>
        <tr>
          <th className="w-28 max-sm:w-[4.5rem]">{texts.when}</th>
          <th className="max-sm:w-[4.25rem]">{texts.by}</th>
          <th className="max-sm:w-[7.75rem]">{texts.action}</th>
          <th>{texts.resource}</th>
          <th className="max-sm:hidden">{texts.rule}</th>
        </tr>
      </thead>
      <tbody>
        {lines.map((line) => (
          <tr key={line.seq} data-action={line.action}>
            <td className="whitespace-nowrap text-muted">
              <Ago at={line.at} />
            </td>
            <Choice text={line.actor} onChoose={() => onChoose({ by: line.actor })} />
            <Choice text={line.action} onChoose={() => onChoose({ action: line.action })}>
              {!line.allowed && <span className="text-fail"> {texts.refused}</span>}
              <p className="text-xs text-muted sm:hidden">{line.rule}</p>
            </Choice>
            <Choice text={line.resource} onChoose={() => onChoose({ resource: line.resource })}>
              <JobLink job={jobOf(line)} />
              {detailWords(line).map((words) => (
                <p key={words} className="text-xs text-muted [overflow-wrap:anywhere]">
                  {words}
                </p>
              ))}
            </Choice>
            <td className="max-sm:hidden">{line.rule}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function JobLink({ job }: { job?: string }) {
  return job ? (
    <Link to="/jobs/$ref" params={{ ref: job }} className="link pl-2 text-xs" aria-label={fill(texts.openJob, { job })}>
      {texts.open}
    </Link>
  ) : null;
}

/** A text that, when it is pressed, shows the lines that have it too. */
function Choice({ text, onChoose, children }: { text: string; onChoose: () => void; children?: ReactNode }) {
  return (
    <td className="min-w-0 [overflow-wrap:anywhere]">
      <button type="button" className="text-left hover:underline" title={fill(texts.only, { text })} onClick={onChoose}>
        {text}
      </button>
      {children}
    </td>
  );
}
