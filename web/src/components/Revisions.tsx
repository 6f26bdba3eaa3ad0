/** The revisions of a document: who made each, when and why; one is shown, another it is compared with. */

import { useInfiniteQuery } from '@tanstack/react-query';
import * as ask from '../api/queries';
import type { DocumentSummary } from '../api/types';
import { configuration as texts } from '../texts/english/configuration';
import { fill } from '../texts/fill';
import { Fault, Skeleton } from './Notices';
import { Ago } from './Time';

interface Props {
  kind: string;
  name: string;
  /** The revision that is shown. */
  shown: number;
  onShow: (revision: number) => void;
  /** Asked to make a revision the current one again; null where the reader may not. */
  onRollBack: ((revision: DocumentSummary) => void) | null;
}

export function Revisions({ kind, name, shown, onShow, onRollBack }: Props) {
  const list = useInfiniteQuery(ask.history(kind, name));
  if (list.error && !list.data) return <Fault error={list.error} retry={() => void list.refetch()} />;
  if (!list.data) return <Skeleton rows={3} />;
  const revisions = list.data.pages.flatMap((page) => page.items);
  const current = revisions[0]?.revision;
  return (
    <>
      <table className="grid-table">
        <thead>
          <tr>
            <th className="num w-16">{texts.revision}</th>
            <th>{texts.when}</th>
            <th>{texts.by}</th>
            <th className="max-sm:hidden">{texts.why}</th>
            <th>
              <span className="sr-only">{texts.rollBack}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {revisions.map((each) => (
            <tr key={each.revision} className={each.revision === shown ? 'bg-accent-ground' : ''} aria-current={each.revision === shown || undefined}>
              <td className="num">
                <button type="button" className="link" onClick={() => onShow(each.revision)} aria-label={fill(texts.showRevision, { revision: each.revision })}>
                  {each.revision}
                </button>
              </td>
              <td className="text-muted">
                <Ago at={each.at} />
              </td>
              <td>
                {each.actor}
                {each.deleted && <span className="pl-2 text-fail">{texts.deleted}</span>}
                <div className="text-xs text-muted sm:hidden">{each.note}</div>
              </td>
              <td className="text-muted max-sm:hidden">{each.note}</td>
              <td className="text-right whitespace-nowrap">
                {each.revision === current ? (
                  <span className="text-xs text-muted">{each.deleted ? '' : texts.current}</span>
                ) : (
                  onRollBack && (
                    <button type="button" className="link" onClick={() => onRollBack(each)} aria-label={fill(texts.rollBackTo, { revision: each.revision })}>
                      {texts.rollBackRow}
                    </button>
                  )
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {list.hasNextPage && (
        <button type="button" className="btn mt-3" onClick={() => void list.fetchNextPage()}>
          {texts.showEarlierRevisions}
        </button>
      )}
    </>
  );
}
