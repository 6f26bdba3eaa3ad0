/** The documents that configure the cluster: what each says now, what it said before, and who changed it. */

import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import * as ask from '../api/queries';
import type { DocumentSummary } from '../api/types';
import { ChangeQuestion } from '../components/ChangeQuestion';
import { CommandLine } from '../components/Copy';
import { Diff } from '../components/Diff';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { Revisions } from '../components/Revisions';
import { Ago } from '../components/Time';
import { useTitle } from '../components/useTitle';
import { quote } from '../lib/cli';
import { nameOf } from '../lib/documents';
import { useKeys, useRowSteps } from '../lib/keys';
import { configuration as texts } from '../texts/english/configuration';
import { fill } from '../texts/fill';
import { EditDocument, NewDocument } from './EditDocument';

const route = getRouteApi('/frame/configuration');
type Search = { document?: string; revision?: string; against?: string; deleted?: string };

/** Whether the reader may change documents; not, while that is not known. */
function useMayChange(): boolean {
  return useQuery(ask.me).data?.role === 'admin';
}

export function Configuration() {
  const { document = '', edit, new: fresh } = route.useSearch();
  const mayChange = useMayChange();
  const writes = fresh !== undefined || (edit !== undefined && document.includes('/'));
  if (writes && !mayChange) return <Empty title={texts.administratorsChange}>{texts.everybodyReads}</Empty>;
  if (fresh) return <NewDocument kind={fresh} />;
  if (writes) return <EditDocument document={document} />;
  return <Browse chosen={document} />;
}

function Browse({ chosen }: { chosen: string }) {
  const navigate = route.useNavigate();
  const list = useInfiniteQuery(ask.documents());
  const { deleted } = route.useSearch();
  const documents = list.data?.pages.flatMap((page) => page.items) ?? [];
  useTitle(texts.title);
  const step = useRowSteps(documents.map(nameOf), chosen, (document) => void navigate({ search: { document, deleted }, replace: true }));
  const mayChange = useMayChange();
  const write = () => mayChange && void navigate({ search: { new: 'Queue' } });
  const edit = () => mayChange && chosen.includes('/') && void navigate({ search: { document: chosen, edit: 'yes' } });
  useKeys({ j: () => step(1), k: () => step(-1), e: edit, n: write });
  return (
    <section className="pt-5">
      <h1 className="sr-only">{texts.title}</h1>
      <div className="grid gap-x-8 gap-y-6 lg:grid-cols-[minmax(19rem,1fr)_minmax(0,2.4fr)]">
        <div className="min-w-0">
          {list.error && !list.data && <Fault error={list.error} retry={() => void list.refetch()} />}
          {list.isPending && <Skeleton rows={6} />}
          {list.data && documents.length === 0 && (
            <Empty title={texts.empty} line="corral apply FILE">
              {texts.emptyNote}
            </Empty>
          )}
          {documents.length > 0 && <Documents documents={documents} chosen={chosen} />}
          <div className="flex flex-wrap gap-2 pt-3">
            <button type="button" className="btn" onClick={write} {...allowed(mayChange)}>
              {texts.newDocument}
            </button>
            {list.hasNextPage && (
              <button type="button" className="btn" onClick={() => void list.fetchNextPage()}>
                {texts.showMoreDocuments}
              </button>
            )}
            <button type="button" className="btn" aria-expanded={deleted !== undefined} onClick={() => void navigate({ search: (now) => ({ ...now, deleted: deleted ? undefined : 'yes' }), replace: true })}>
              {deleted ? texts.hideDeleted : texts.showDeleted}
            </button>
          </div>
          {deleted && <Deleted chosen={chosen} />}
        </div>
        <div className="min-w-0">{chosen.includes('/') ? <Chosen key={chosen} document={chosen} /> : documents.length > 0 && <p className="py-2 text-sm text-muted max-lg:hidden">{texts.choose}</p>}</div>
      </div>
    </section>
  );
}

/** The documents that were deleted, each at the revision that did so. */
function Deleted({ chosen }: { chosen: string }) {
  const { data, error, isPending, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery(ask.documents(true));
  const documents = data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <section aria-label={texts.deletedDocuments} className="pt-5">
      <h2 className="heading">{texts.deletedDocuments}</h2>
      {error && !data && <Fault error={error} retry={() => void refetch()} />}
      {isPending && <Skeleton rows={3} />}
      {data && <p className="pb-2 text-xs text-muted">{documents.length > 0 ? texts.bringBack : texts.noneDeleted}</p>}
      {documents.length > 0 && <Documents documents={documents} chosen={chosen} />}
      {hasNextPage && (
        <button type="button" className="btn mt-3" onClick={() => void fetchNextPage()}>
          {texts.showMoreDocuments}
        </button>
      )}
    </section>
  );
}

/** A button for administrators only says so to everybody else. */
function allowed(mayChange: boolean): { disabled: boolean; title?: string } {
  return mayChange ? { disabled: false } : { disabled: true, title: texts.administratorsChange };
}

function Documents({ documents, chosen }: { documents: DocumentSummary[]; chosen: string }) {
  return (
    <table className="grid-table">
      <thead>
        <tr>
          <th>{texts.document}</th>
          <th className="num">{texts.revision}</th>
          <th>{texts.changed}</th>
          <th>{texts.by}</th>
        </tr>
      </thead>
      <tbody>
        {documents.map((each) => (
          <tr key={nameOf(each)} className={nameOf(each) === chosen ? 'bg-accent-ground' : ''}>
            <td className="max-w-56 truncate">
              <Link to="/configuration" search={({ deleted }) => ({ document: nameOf(each), deleted })} className="hover:underline" aria-current={nameOf(each) === chosen || undefined}>
                <span className="text-muted">{each.kind}</span> <span className="font-medium">{each.name}</span>
              </Link>
            </td>
            <td className="num">{each.revision}</td>
            <td className="text-muted">
              <Ago at={each.at} />
            </td>
            <td className="text-muted">{each.actor}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Chosen({ document }: { document: string }) {
  const { revision, against, deleted } = route.useSearch();
  const navigate = route.useNavigate();
  const [kind = '', name = ''] = document.split('/', 2);
  const [asking, setAsking] = useState<{ of: DocumentSummary; action: 'rollback' | 'delete' } | null>(null);
  const mayChange = useMayChange();
  const history = useInfiniteQuery(ask.history(kind, name));
  const current = history.data?.pages[0]?.items[0];
  const latest = current?.revision;
  const shown = Number(revision) || latest || 0;
  const set = (change: Search) => void navigate({ search: { document, revision, against, deleted, ...change }, replace: true });
  const line = quote(`${kind.toLowerCase()}/${name}`);
  if (history.error && !history.data) return <Fault error={history.error} retry={() => void history.refetch()} />;
  return (
    <>
      <div className="flex items-end gap-3 border-b border-line pb-1.5">
        <h2 className="grow truncate text-sm font-semibold">
          {kind} {name}
        </h2>
        <button type="button" className="btn !h-7" onClick={() => void navigate({ search: { document, edit: 'yes' } })} {...allowed(mayChange)}>
          {texts.edit}
        </button>
        {current && !current.deleted && (
          <button type="button" className="btn btn-grave !h-7" onClick={() => setAsking({ of: current, action: 'delete' })} {...allowed(mayChange)}>
            {texts.delete}
          </button>
        )}
      </div>
      <Revisions
        kind={kind}
        name={name}
        shown={shown}
        onShow={(each) => set({ revision: each === latest ? undefined : String(each), against: undefined })}
        onRollBack={mayChange ? (of) => setAsking({ of, action: 'rollback' }) : null}
      />
      {shown > 0 && (
        <>
          <div className="flex flex-wrap items-center gap-x-1 gap-y-2 pt-6 pb-3">
            <div className="flex gap-1" role="tablist" aria-label={texts.whatIsShown}>
              <Choice chosen={against === undefined} onClick={() => set({ against: undefined })}>
                {fill(texts.revisionNumber, { revision: shown })}
              </Choice>
              <Choice chosen={against !== undefined} onClick={() => set({ against: String(shown - 1) })}>
                {texts.changes}
              </Choice>
            </div>
            {against !== undefined && <Against shown={shown} latest={latest ?? shown} against={Number(against) || 0} onChange={(each) => set({ against: String(each) })} />}
          </div>
          {against === undefined ? <Text kind={kind} name={name} revision={shown} /> : <Changes kind={kind} name={name} before={Number(against) || 0} after={shown} />}
        </>
      )}
      <div className="flex flex-wrap justify-between gap-2 pt-3">
        <CommandLine line={`corral history ${line}`} className="-ml-1.5" />
        <CommandLine line={against === undefined ? `corral get ${line}${revision ? ` --revision ${shown}` : ''} -o yaml` : `corral diff ${line} --from ${against} --to ${shown}`} className="max-sm:-ml-1.5" />
      </div>
      {asking && <ChangeQuestion {...asking} onClose={() => setAsking(null)} />}
    </>
  );
}

function Choice({ chosen, onClick, children }: { chosen: boolean; onClick: () => void; children: string }) {
  return (
    <button type="button" role="tab" aria-selected={chosen} onClick={onClick} className={`h-7 border-b-2 px-2 text-sm ${chosen ? 'border-accent text-text' : 'border-transparent text-muted hover:text-text'}`}>
      {children}
    </button>
  );
}

function Against({ shown, latest, against, onChange }: { shown: number; latest: number; against: number; onChange: (revision: number) => void }) {
  const others = Array.from({ length: latest }, (_, at) => latest - at).filter((each) => each < shown);
  return (
    <label className="flex items-center gap-2 pl-3 text-sm text-muted">
      {texts.since}
      <select className="field !h-7 !w-auto" value={against} onChange={(event) => onChange(Number(event.target.value))}>
        {others.map((each) => (
          <option key={each} value={each}>
            {fill(texts.sinceRevision, { revision: each })}
          </option>
        ))}
        <option value={0}>{texts.sinceNothing}</option>
      </select>
    </label>
  );
}

function Text({ kind, name, revision }: { kind: string; name: string; revision: number }) {
  const { data, error, refetch } = useQuery(ask.document(kind, name, revision));
  if (error && !data) return <Fault error={error} retry={() => void refetch()} />;
  if (!data) return <Skeleton />;
  if (data.deleted) return <p className="py-3 text-sm text-muted">{texts.revisionDeletedIt}</p>;
  return (
    <pre className="overflow-x-auto border border-line bg-sunken px-3 py-2 font-mono text-xs leading-5" tabIndex={0} aria-label={fill(texts.textOf, { kind, name, revision })}>
      {data.text}
    </pre>
  );
}

function Changes({ kind, name, before, after }: { kind: string; name: string; before: number; after: number }) {
  const { data, error, refetch } = useQuery(ask.difference(kind, name, before, after));
  if (error && !data) return <Fault error={error} retry={() => void refetch()} />;
  return data ? <Diff diff={data.diff} /> : <Skeleton />;
}
