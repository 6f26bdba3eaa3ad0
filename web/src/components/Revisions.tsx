/** The revisions of a document: who made each, when and why; one is shown, another it is compared with. */

import { useInfiniteQuery } from '@tanstack/react-query';
import * as ask from '../api/queries';
import type { DocumentSummary } from '../api/types';
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
            <th className="num w-16">Revision</th>
            <th>When</th>
            <th>By</th>
            <th className="max-sm:hidden">Why</th>
            <th>
              <span className="sr-only">Roll back</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {revisions.map((each) => (
            <tr key={each.revision} className={each.revision === shown ? 'bg-accent-ground' : ''} aria-current={each.revision === shown || undefined}>
              <td className="num">
                <button type="button" className="link" onClick={() => onShow(each.revision)} aria-label={`Show revision ${each.revision}`}>
                  {each.revision}
                </button>
              </td>
              <td className="text-muted">
                <Ago at={each.at} />
              </td>
              <td>
                {each.actor}
                {each.deleted && <span className="pl-2 text-fail">✕ deleted</span>}
                <div className="text-xs text-muted sm:hidden">{each.note}</div>
              </td>
              <td className="text-muted max-sm:hidden">{each.note}</td>
              <td className="text-right whitespace-nowrap">
                {each.revision === current ? (
                  <span className="text-xs text-muted">{each.deleted ? '' : '● current'}</span>
                ) : (
                  onRollBack && (
                    <button type="button" className="link" onClick={() => onRollBack(each)} aria-label={`Roll back to revision ${each.revision}`}>
                      roll back
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
          Show earlier revisions
        </button>
      )}
    </>
  );
}
