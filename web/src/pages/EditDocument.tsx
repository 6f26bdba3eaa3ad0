/** Writing a document: a new one, or the next revision of one that there is. */

import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import * as ask from '../api/queries';
import type { DocumentSummary } from '../api/types';
import { DocumentEditor } from '../components/DocumentEditor';
import { Fault, Skeleton } from '../components/Notices';
import { useTitle } from '../components/useTitle';
import { KINDS, kindOf, template } from '../lib/documents';
import { configuration as texts } from '../texts/english/configuration';
import { fill, filled } from '../texts/fill';

/** `document` is KIND/NAME. */
export function EditDocument({ document }: { document: string }) {
  const [kind = '', name = ''] = document.split('/', 2);
  const history = useInfiniteQuery(ask.history(kind, name));
  const latest = history.data?.pages[0]?.items[0];
  useTitle(fill(texts.editNamed, { kind, name }));
  if (history.error && !latest) return <Fault error={history.error} retry={() => void history.refetch()} />;
  return (
    <section className="pt-5">
      <div className="flex flex-wrap items-baseline gap-x-3">
        <h1 className="text-xl font-semibold tracking-tight">
          {filled(texts.editHeading, { edit: <span className="font-normal text-muted">{fill(texts.editKind, { kind })}</span>, name })}
        </h1>
        {latest && (
          <Link to="/configuration" search={{ document }} className="text-sm text-muted hover:underline">
            {fill(latest.deleted ? texts.deletedBy : texts.inForce, { revision: latest.revision })}
          </Link>
        )}
      </div>
      {latest ? <Edited key={document} latest={latest} /> : <Skeleton rows={8} />}
    </section>
  );
}

function Edited({ latest }: { latest: DocumentSummary }) {
  const { kind, name } = latest;
  const [base] = useState(latest);
  const { data, error, refetch } = useQuery(ask.document(kind, name, base.revision));
  if (error && !data) return <Fault error={error} retry={() => void refetch()} />;
  if (!data) return <Skeleton rows={8} />;
  return <DocumentEditor of={`${kind}/${name}`} start={data.text} base={base} latest={latest} />;
}

export function NewDocument({ kind: word }: { kind: string }) {
  const kind = kindOf(word);
  useTitle(texts.newDocument);
  return (
    <section className="pt-5">
      <h1 className="text-xl font-semibold tracking-tight">{texts.newDocument}</h1>
      <nav aria-label={texts.kindOfDocument} className="-ml-2 flex flex-wrap gap-x-1 pt-2">
        {KINDS.map((each) => (
          <Link
            key={each}
            to="/configuration"
            search={{ new: each }}
            replace
            aria-current={each === kind ? 'true' : undefined}
            className={`flex h-7 items-center border-b-2 px-2 text-sm ${each === kind ? 'border-accent text-text' : 'border-transparent text-muted hover:text-text'}`}
          >
            {each}
          </Link>
        ))}
      </nav>
      <DocumentEditor key={kind} of="" start={template(kind)} base={null} latest={null} />
    </section>
  );
}
