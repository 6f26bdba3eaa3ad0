/** Templates: what people share to start from, with pictures and texts; items of OpenPAI's marketplace come in here. */

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { pictureAddress, templates, type TemplateFilter, type TemplateLine } from '../api/templates';
import { ImportItems } from '../components/ImportItems';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { SearchField } from '../components/SearchField';
import { useSettled } from '../components/useSettled';
import { useTitle } from '../components/useTitle';
import { audience, KINDS } from '../lib/templates';
import { templates as texts } from '../texts/english/templates';
import { fill, filled, number } from '../texts/fill';

const route = getRouteApi('/frame/templates');
const WHOSE = ['', 'mine', 'groups', 'everybody'] as const;

export function Templates() {
  const filter = route.useSearch();
  const navigate = route.useNavigate();
  const [text, setText] = useState(filter.q ?? '');
  const [importing, setImporting] = useState(false);
  const settled = useSettled(text);
  const list = useQuery(templates(filter));
  useTitle(texts.templates);
  const change = (next: TemplateFilter) => void navigate({ search: { ...filter, page: undefined, ...next }, replace: true });
  useEffect(() => {
    if (settled !== (filter.q ?? '')) change({ q: settled || undefined });
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the text leads, the address follows
  }, [settled]);
  const found = list.data?.items ?? [];
  const narrowed = !!(filter.q || filter.kind || filter.whose);
  return (
    <section className="pt-5">
      <div className="flex flex-wrap items-center gap-3">
        <h1 className="text-xl font-semibold tracking-tight">{texts.templates}</h1>
        <span className="grow" />
        <button type="button" className="btn" onClick={() => setImporting(true)}>
          {texts.importItems}
        </button>
      </div>
      <div role="search" className="flex flex-wrap items-center gap-2 py-3">
        <SearchField label={texts.searchTemplatesTheir} hint={texts.searchByWords} value={text} onChange={setText} />
        <select aria-label={texts.type} className="field !w-auto" value={filter.kind ?? ''} onChange={(event) => change({ kind: event.target.value || undefined })}>
          <option value="">{texts.allTypes}</option>
          {KINDS.map((kind) => (
            <option key={kind}>{kind}</option>
          ))}
        </select>
        <select aria-label={texts.whose} className="field !w-auto max-w-full" value={filter.whose ?? ''} onChange={(event) => change({ whose: event.target.value || undefined })}>
          {WHOSE.map((value) => (
            <option key={value} value={value}>
              {texts.audiences[value || 'all']}
            </option>
          ))}
        </select>
      </div>
      {list.error && !list.data && <Fault error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && <Skeleton rows={5} />}
      {list.data && found.length === 0 && (
        <Empty title={narrowed ? texts.templateHasAll : texts.nobodySharesTemplate}>
          {filled(texts.templateJobFile, { link: <Link to="/submit" className="link">{texts.submit}</Link> })}
        </Empty>
      )}
      <ul aria-label={texts.templates} className="grid grid-cols-1 gap-3 sm:grid-cols-2 lg:grid-cols-3 xl:grid-cols-4">
        {found.map((each) => (
          <Card key={`${each.type}/${each.name}`} of={each} />
        ))}
      </ul>
      {list.data && <Pages at={list.data.pageNo} size={list.data.pageSize} total={list.data.totalCount} onChange={(page) => change({ page: page > 1 ? String(page) : undefined })} />}
      {importing && <ImportItems onClose={() => setImporting(false)} />}
    </section>
  );
}

function Card({ of }: { of: TemplateLine }) {
  const [unreadable, setUnreadable] = useState(false);
  return (
    <li data-template={`${of.type}/${of.name}`} className="relative flex min-w-0 flex-col overflow-hidden rounded-[6px] border border-line bg-raised focus-within:border-accent hover:border-line-strong">
      {of.hasPicture && !unreadable ? (
        <img src={pictureAddress(of)} alt="" loading="lazy" onError={() => setUnreadable(true)} className="h-32 w-full border-b border-line bg-sunken object-cover" />
      ) : (
        <span aria-hidden className="flex h-32 items-center justify-center border-b border-line bg-sunken font-mono text-lg text-faint">
          {of.type}
        </span>
      )}
      <div className="flex grow flex-col gap-1 p-3">
        <h2 className="truncate font-semibold">
          <Link to="/templates/$kind/$name" params={{ kind: of.type, name: of.name }} className="after:absolute after:inset-0 hover:underline">
            {of.name}
          </Link>
        </h2>
        <p className="line-clamp-3 text-sm text-muted">{of.description || texts.noDescription}</p>
        <p className="mt-auto truncate pt-2 text-xs text-muted">
          {fill(texts.by, { type: of.type, contributor: of.contributor })}
          {of.contributor !== of.owner && fill(texts.sharedBy, { owner: of.owner })}
          {!of.isPublic && fill(texts.for, { of: audience(of) })}
        </p>
        {of.tags.length > 0 && <p className="truncate text-xs text-muted">{of.tags.join(' · ')}</p>}
      </div>
    </li>
  );
}

function Pages({ at, size, total, onChange }: { at: number; size: number; total: number; onChange: (page: number) => void }) {
  if (total <= size && at === 1) return null;
  const last = Math.max(1, Math.ceil(total / size));
  return (
    <nav aria-label={texts.pagesOfTemplates} className="flex items-center gap-3 pt-4 text-sm">
      <button type="button" className="btn" disabled={at <= 1} onClick={() => onChange(at - 1)}>
        {texts.before}
      </button>
      <span className="text-muted">{fill(texts.pageOfTemplates, { at, last, total: number(total) })}</span>
      <button type="button" className="btn" disabled={at >= last} onClick={() => onChange(at + 1)}>
        {texts.next}
      </button>
    </nav>
  );
}
