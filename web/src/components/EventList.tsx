/** What happened to a job, in order, in the server's own sentences. */

import { useInfiniteQuery } from '@tanstack/react-query';
import * as ask from '../api/queries';
import { absolute, clock } from '../lib/time';
import { job as texts } from '../texts/english/job';
import { Empty, Fault, Skeleton } from './Notices';

const GRAVE = /fail|exited|lost|kill|refus/;

export function EventList({ job }: { job: string }) {
  const list = useInfiniteQuery(ask.events(job));
  if (list.error && !list.data) return <Fault error={list.error} retry={() => void list.refetch()} />;
  if (!list.data) return <Skeleton />;
  const events = list.data.pages.flatMap((page) => page.items);
  if (events.length === 0) return (
      <Empty title={texts.nothingHasHappened}>{texts.eachStepJob}</Empty>
    );
  return (
    <>
      <table className="grid-table">
        <thead>
          <tr>
            <th className="w-20">{texts.time}</th>
            <th className="w-44 max-sm:hidden">{texts.event}</th>
            <th>{texts.what}</th>
            <th className="max-md:hidden">{texts.by}</th>
          </tr>
        </thead>
        <tbody>
          {events.map((event) => (
            <tr key={event.seq}>
              <td>
                <time dateTime={event.at} title={absolute(event.at)}>
                  {clock(event.at)}
                </time>
              </td>
              <td className="font-mono text-xs text-muted max-sm:hidden">{event.kind}</td>
              <td className={GRAVE.test(event.kind) && event.data.code ? 'text-fail' : ''}>{event.message}</td>
              <td className="text-muted max-md:hidden">{event.actor}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {list.hasNextPage && (
        <button type="button" className="btn mt-3" onClick={() => void list.fetchNextPage()}>
          {texts.showLaterEvents}
        </button>
      )}
    </>
  );
}
