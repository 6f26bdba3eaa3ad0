/** One template: its text, its pictures, its job file, and a job begun from it. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { remove, template, type TemplateDetail } from '../api/templates';
import { FormDialog } from '../components/FormDialog';
import { Markdown } from '../components/Markdown';
import { Fault, Skeleton } from '../components/Notices';
import { Ago } from '../components/Time';
import { useTitle } from '../components/useTitle';
import { audience, fileOf, pictureAddresses, pictureAt, restOf } from '../lib/templates';
import { templates as texts } from '../texts/english/templates';
import { fill, filled } from '../texts/fill';

const route = getRouteApi('/frame/templates/$kind/$name');

export function Template() {
  const { kind, name } = route.useParams();
  const { version } = route.useSearch();
  const asked = useQuery(template(kind, name, version));
  useTitle(name);
  if (asked.isPending) return <Skeleton rows={6} />;
  if (!asked.data)
    return (
      <section className="pt-5">
        <h1 className="text-xl font-semibold tracking-tight">{name}</h1>
        <Fault error={asked.error} retry={() => void asked.refetch()} />
      </section>
    );
  return <Shown kind={kind} of={asked.data} />;
}

function Shown({ kind, of }: { kind: string; of: TemplateDetail }) {
  const [deleting, setDeleting] = useState(false);
  const { item, versions } = of;
  const navigate = route.useNavigate();
  const file = fileOf(item);
  const rest = file && !item.file && !item.protocol && !item.config && !item.jobConfig ? '' : restOf({ ...item, protocol: undefined, config: undefined, jobConfig: undefined });
  return (
    <section className="pt-5">
      <p className="text-xs">
        <Link to="/templates" className="link">
          {texts.templates}
        </Link>
      </p>
      <div className="flex flex-wrap items-center gap-3 pt-1">
        <h1 className="min-w-0 text-xl font-semibold tracking-tight break-words">{item.name}</h1>
        <span className="grow" />
        {versions.length > 1 && (
          <select aria-label={texts.version} className="field !w-auto" value={String(item.version)} onChange={(event) => void navigate({ search: { version: event.target.value === versions[0] ? undefined : event.target.value } })}>
            {versions.map((each, at) => (
              <option key={each} value={each}>
                {at === 0 ? texts.latestVersion : each.slice(0, 8)}
              </option>
            ))}
          </select>
        )}
        {file && (
          <Link to="/submit" search={{ template: `${kind}/${item.name}` }} className="btn btn-main">
            {texts.startJobFrom}
          </Link>
        )}
        {of.mayChange && (
          <button type="button" className="btn btn-grave" onClick={() => setDeleting(true)}>
            {texts.delete}
          </button>
        )}
      </div>
      <p className="pt-1 text-sm text-muted">
        {filled(texts.shared, { kind, contributor: item.contributor || of.owner, owner: of.owner, time: <Ago at={of.changedAt} />, item: audience(item), value: [...(item.categories ?? []), ...(item.tags ?? [])].map((each) => ` · ${each}`) })}
      </p>
      <div className="grid grid-cols-[minmax(0,1fr)] gap-x-8 gap-y-5 pt-4 lg:grid-cols-2">
        <div className="min-w-0 space-y-4">
          {item.description && <p className="max-w-[75ch]">{item.description}</p>}
          <Gallery of={of} />
          {item.introduction && <Markdown text={item.introduction} pictures={item.pictures} />}
        </div>
        <div className="min-w-0 space-y-4">
          {file && <Text title={texts.jobFile} text={file} />}
          {rest && <Text title={texts.besideIt} text={rest} />}
        </div>
      </div>
      {deleting && <DeleteTemplate kind={kind} name={item.name} onClose={() => setDeleting(false)} />}
    </section>
  );
}

/** The pictures that the text does not show itself. */
function Gallery({ of: { item } }: { of: TemplateDetail }) {
  const named = new Set(pictureAddresses(item.introduction ?? ''));
  const more = Object.keys(item.pictures ?? {}).filter((address) => !named.has(address) && pictureAt(address, item.pictures));
  return more.map((address) => <img key={address} src={pictureAt(address, item.pictures)} alt={fill(texts.pictureOf, { name: item.name })} className="max-w-full rounded-[4px] border border-line" />);
}

function Text({ title, text }: { title: string; text: string }) {
  return (
    <div>
      <h2 className="label pb-1">{title}</h2>
      <pre tabIndex={0} aria-label={title} role="region" className="max-h-[60vh] overflow-auto rounded-[4px] border border-line bg-sunken p-3 font-mono text-xs">
        {text}
      </pre>
    </div>
  );
}

function DeleteTemplate({ kind, name, onClose }: { kind: string; name: string; onClose: () => void }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const act = useMutation({
    mutationFn: () => remove(kind, name),
    onSuccess: async () => {
      await navigate({ to: '/templates' });
      await client.invalidateQueries({ queryKey: ['templates'] });
    },
  });
  return (
    <FormDialog title={fill(texts.deleteNamed, { name })} word={texts.delete} grave pending={act.isPending} error={act.error} onSubmit={() => act.mutate()} onClose={onClose}>
      <p className="text-sm text-muted">{texts.templateGoesAll}</p>
    </FormDialog>
  );
}
