/** The queues as a tree: what each is owed, uses, borrows and lends, and what waits in it. */

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import * as ask from '../api/queries';
import type { Queue } from '../api/types';
import { BesideCorral } from '../components/BesideCorral';
import { CommandLine } from '../components/Copy';
import { Empty, Fault, Skeleton } from '../components/Notices';
import { QueueDetail } from '../components/QueueDetail';
import { QueueTabs } from '../components/QueueTabs';
import { ShareEditor } from '../components/ShareEditor';
import { ShareBar, ShareLegend } from '../components/ShareBar';
import { useTitle } from '../components/useTitle';
import { quote } from '../lib/cli';
import { useKeys, useRowSteps } from '../lib/keys';
import { amount, own, resources, scaleOf } from '../lib/shares';
import { queues as texts } from '../texts/english/queues';
import { counted, number } from '../texts/fill';

const route = getRouteApi('/frame/queues');

export function Queues() {
  const { queue = '', resource = 'devices', move } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useQuery(ask.queues);
  const me = useQuery(ask.me);
  const admin = me.data?.role === 'admin';
  useTitle(texts.queues);
  const queues = list.data?.items ?? [];
  const standings = queues.flatMap((each) => each.standing ?? []);
  const set = (change: { queue?: string; resource?: string; move?: string }) =>
    void navigate({ search: (now) => ({ ...now, ...change }), replace: true });
  const step = useRowSteps(queues.map(({ name }) => name), queue, (next) => set({ queue: next }));
  const edit = () => admin && queues.length > 0 && set({ move: 'devices' });
  useKeys(move === undefined ? { j: () => step(1), k: () => step(-1), e: edit, Escape: () => set({ queue: undefined }) } : {});
  const chosen = queues.find((each) => each.name === queue);
  if (move !== undefined && me.data)
    return (
      <section className="pt-3">
        <h1 className="sr-only">{texts.queues}</h1>
        <QueueTabs queue={queue} />
        {!admin && <Empty title={texts.administratorsMoveShares}>{texts.everybodyMaySee}</Empty>}
        {admin && list.error && !list.data && <Fault error={list.error} retry={() => void list.refetch()} />}
        {admin && list.isPending && <Skeleton rows={6} height={22} />}
        {admin && queues.length > 0 && <ShareEditor queues={queues} chosen={move} onChoose={(each) => set({ move: each })} onClose={() => void navigate({ search: { queue: queue || undefined } })} />}
      </section>
    );
  return (
    <section className="pt-3">
      <h1 className="sr-only">{texts.queues}</h1>
      <QueueTabs queue={queue} />
      <div className="flex flex-wrap items-center gap-3 py-2.5">
        <label className="flex items-center gap-2 text-xs text-muted">
          {texts.barsShow}
          <select className="field !w-auto" value={resource} onChange={(event) => set({ resource: event.target.value === 'devices' ? undefined : event.target.value })}>
            {resources(standings).map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        {admin && queues.length > 0 && (
          <button type="button" className="btn" onClick={edit}>
            {texts.moveShares}
          </button>
        )}
        {list.data && standings.length < queues.length && (
          <span role="status" className="text-xs text-wait">
            {texts.schedulerDoesAnswer}
          </span>
        )}
      </div>
      {list.error && !list.data && <Fault error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && <Skeleton rows={6} height={22} />}
      {list.data && queues.length === 0 && (
        <Empty title={texts.thereQueueYet} line="corral apply queues.yaml">
          {texts.jobsWaitQueue}
        </Empty>
      )}
      {queues.length > 0 && <Tree queues={queues} chosen={queue} resource={resource} />}
      {scaleOf(standings, resource) > 0 && <ShareLegend />}
      {!chosen && standings.length > 0 && !standings.some((each) => own(each, 'devices')) && (
        <Empty title={texts.queueHasShare} line="corral apply queues.yaml -m 'research owns two nodes'">
          {texts.allQueuesShare}
        </Empty>
      )}
      {chosen && <QueueDetail key={chosen.name} queue={chosen} />}
      <p className="pt-4">
        <CommandLine line={chosen ? `corral queues ${quote(chosen.name)}` : resource === 'devices' ? 'corral queues' : `corral queues --resource ${quote(resource)}`} className="ml-1" />
      </p>
      <BesideCorral />
    </section>
  );
}

function Tree({ queues, chosen, resource }: { queues: Queue[]; chosen: string; resource: string }) {
  const scale = scaleOf(queues.flatMap((each) => each.standing ?? []), resource);
  return (
    <table className="grid-table">
      <thead>
        <tr>
          <th>{texts.queue}</th>
          <th className="w-[38%] min-w-28 max-sm:w-[45%]">{texts.share}</th>
          <th className="num">{texts.used}</th>
          <th className="num max-sm:hidden">{texts.deserved}</th>
          <th className="num max-lg:hidden">{texts.fairShare}</th>
          <th className="num max-lg:hidden">{texts.limit}</th>
          <th className="num max-md:hidden">{texts.borrowed}</th>
          <th className="num max-md:hidden">{texts.lent}</th>
          <th className="num max-sm:hidden">{texts.running}</th>
          <th className="num">{texts.waiting}</th>
        </tr>
      </thead>
      <tbody>
        {queues.map((queue) => (
          <Row key={queue.name} queue={queue} chosen={queue.name === chosen} resource={resource} scale={scale} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ queue, chosen, resource, scale }: { queue: Queue; chosen: boolean; resource: string; scale: number }) {
  const standing = queue.standing;
  const say = (value: number | undefined) => (value ? amount(resource, value) : <span className="text-muted">–</span>);
  const waiting = standing?.waiting ?? queue.waiting;
  return (
    <tr data-queue={queue.name} aria-selected={chosen} className="hover:bg-sunken aria-selected:bg-accent-ground aria-selected:shadow-[inset_3px_0_var(--accent)]">
      <td className="max-w-40 truncate">
        <span style={{ paddingLeft: `${(standing?.depth ?? 0) * 16}px` }}>
          {(standing?.depth ?? 0) > 0 && (
            <span aria-hidden className="pr-1 text-muted">
              └
            </span>
          )}
          <Link to="/queues" search={(now) => ({ ...now, queue: chosen ? undefined : queue.name })} replace aria-expanded={chosen} className="font-medium hover:underline">
            {queue.name}
          </Link>
        </span>
      </td>
      <td>{standing && <ShareBar queue={standing} resource={resource} scale={scale} />}</td>
      <td className="num font-medium">{amount(resource, standing?.used[resource] ?? (resource === 'devices' && !standing ? queue.devices : 0))}</td>
      <td className="num max-sm:hidden">{say(standing ? own(standing, resource) : 0)}</td>
      <td className="num text-muted max-lg:hidden">{say(standing?.fair[resource])}</td>
      <td className="num text-muted max-lg:hidden">{say(standing?.limit[resource])}</td>
      <td className="num max-md:hidden">{say(standing?.borrowed[resource])}</td>
      <td className="num max-md:hidden">{say(standing?.lent[resource])}</td>
      <td className="num max-sm:hidden">{standing?.running ?? queue.running}</td>
      <td className="num">
        {waiting > 0 ? (
          <Link to="/line" search={{ queue: queue.name }} className="link" aria-label={counted(texts.waitingIn, waiting, { name: queue.name })}>
            {number(waiting)}
          </Link>
        ) : (
          <span className="text-muted">0</span>
        )}
      </td>
    </tr>
  );
}
