/** The server's own parts, for administrators: what each is, its version, and what of it does not work. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ApiError } from '../api/client';
import { serverParts } from '../api/serverparts';
import type { ServerPart } from '../api/types';
import { CommandLine } from '../components/Copy';
import { NodeTabs } from '../components/NodeTabs';
import { Fault, Skeleton } from '../components/Notices';
import { useTitle } from '../components/useTitle';
import { pages } from '../texts/english/palette';
import { server as texts } from '../texts/english/server';
import { counted, fill, filled, number } from '../texts/fill';

const COLOURS: Record<ServerPart['state'], string> = { ok: 'text-accent', degraded: 'text-wait', away: 'text-fail' };

export function ServerParts() {
  const list = useQuery(serverParts);
  useTitle(texts.title);
  if (list.error instanceof ApiError && list.error.status === 403) return <Fault error={list.error} />;
  const parts = list.data?.items ?? [];
  const version = (kind: ServerPart['kind']) => parts.find((part) => part.kind === kind)?.version;
  const [front, scheduler] = [version('front'), version('scheduler')];
  const troubled = parts.filter((part) => part.state !== 'ok').length;
  return (
    <section className="pt-3">
      <h1 className="sr-only">{texts.title}</h1>
      <NodeTabs />
      {list.error && <Fault error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && !list.error && <Skeleton rows={4} />}
      {list.data && (
        <p role="status" className="py-2.5 text-sm">
          {troubled > 0 ? <span className="text-fail">{counted(texts.troubled, troubled, { all: number(parts.length) })}</span> : <span className="text-accent">{fill(texts.allWork, { count: number(parts.length) })}</span>}
        </p>
      )}
      {parts.length > 0 && (
        <table className="grid-table" aria-label={texts.parts}>
          <thead>
            <tr>
              <th>{texts.part}</th>
              <th>{texts.state}</th>
              <th>{texts.version}</th>
              <th className="max-sm:hidden">{texts.lacking}</th>
            </tr>
          </thead>
          <tbody>
            {parts.map((part) => (
              <Row key={`${part.kind} ${part.name}`} part={part} />
            ))}
          </tbody>
        </table>
      )}
      {front && scheduler && front !== scheduler && <p className="pt-3 text-sm text-wait">{fill(texts.differ, { front, scheduler })}</p>}
      {list.data && !parts.some(({ kind }) => kind === 'agent') && (
        <p className="pt-3 text-xs text-muted">{texts.noAgents}</p>
      )}
      <p className="pt-3 text-xs text-muted">
        {filled(texts.elsewhere, {
          nodes: <Link to="/nodes" className="link">{pages['/nodes'].name}</Link>,
          alerts: <Link to="/alerts" className="link">{pages['/alerts'].name}</Link>,
        })}
      </p>
      <CommandLine line="corral doctor" className="ml-1 pt-3" />
    </section>
  );
}

function Row({ part }: { part: ServerPart }) {
  const own = part.kind === 'front' || part.kind === 'scheduler' ? '' : part.name;
  const reasons = part.reasons.map((each) => <div key={each}>{each}</div>);
  return (
    <tr data-server-part={`${part.kind}/${part.name}`}>
      <td className="break-words">
        {texts.kinds[part.kind]} {own && <span className="font-mono text-xs text-muted">{own}</span>}
        {part.runsOn.length > 0 && <div className="text-xs text-muted">{part.runsOn.join(' · ')}</div>}
        <div className="text-xs text-muted sm:hidden">{reasons}</div>
      </td>
      <td className={`whitespace-nowrap ${COLOURS[part.state]}`}>{texts.states[part.state]}</td>
      <td className="font-mono text-xs">{part.version || <span className="text-muted">{texts.notTold}</span>}</td>
      <td className="text-muted max-sm:hidden">{reasons}</td>
    </tr>
  );
}
