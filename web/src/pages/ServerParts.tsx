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
import { count } from '../lib/format';

const KINDS: Record<ServerPart['kind'], string> = {
  front: 'API and portal',
  scheduler: 'Scheduler',
  store: 'Database',
  engine: 'Engine',
  agent: 'Agent of a node',
};
const STATES: Record<ServerPart['state'], readonly [word: string, colour: string]> = {
  ok: ['● works', 'text-accent'],
  degraded: ['◌ works in part', 'text-wait'],
  away: ['✕ does not answer', 'text-fail'],
};

export function ServerParts() {
  const list = useQuery(serverParts);
  useTitle('Server');
  if (list.error instanceof ApiError && list.error.status === 403) return <Fault error={list.error} />;
  const parts = list.data?.items ?? [];
  const version = (kind: ServerPart['kind']) => parts.find((part) => part.kind === kind)?.version;
  const [front, scheduler] = [version('front'), version('scheduler')];
  const troubled = parts.filter((part) => part.state !== 'ok').length;
  return (
    <section className="pt-3">
      <h1 className="sr-only">Server</h1>
      <NodeTabs />
      {list.error && <Fault error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && !list.error && <Skeleton rows={4} />}
      {list.data && (
        <p role="status" className="py-2.5 text-sm">
          {troubled > 0 ? <span className="text-fail">{`✕ ${count(troubled, 'part')} of ${parts.length} ${troubled === 1 ? 'does' : 'do'} not work in full.`}</span> : <span className="text-accent">{`✓ All ${parts.length} parts work.`}</span>}
        </p>
      )}
      {parts.length > 0 && (
        <table className="grid-table" aria-label="Parts of the server">
          <thead>
            <tr>
              <th>Part</th>
              <th>State</th>
              <th>Version</th>
              <th className="max-sm:hidden">What does not work</th>
            </tr>
          </thead>
          <tbody>
            {parts.map((part) => (
              <Row key={`${part.kind} ${part.name}`} part={part} />
            ))}
          </tbody>
        </table>
      )}
      {front && scheduler && front !== scheduler && <p className="pt-3 text-sm text-wait">{`◌ The API is version ${front} and the scheduler ${scheduler}: restart the server.`}</p>}
      {list.data && !parts.some(({ kind }) => kind === 'agent') && (
        <p className="pt-3 text-xs text-muted">No agents of other machines are asked; what each device does is then known of this machine alone.</p>
      )}
      <p className="pt-3 text-xs text-muted">
        What machines do is on <Link to="/nodes" className="link">Nodes</Link>, what is wrong with them among <Link to="/alerts" className="link">Alerts</Link>.
      </p>
      <CommandLine line="corral doctor" className="ml-1 pt-3" />
    </section>
  );
}

function Row({ part }: { part: ServerPart }) {
  const [word, colour] = STATES[part.state];
  const kind = KINDS[part.kind];
  const own = part.kind === 'front' || part.kind === 'scheduler' ? '' : part.name;
  const reasons = part.reasons.map((each) => <div key={each}>{each}</div>);
  return (
    <tr data-server-part={`${part.kind}/${part.name}`}>
      <td className="break-words">
        {kind} {own && <span className="font-mono text-xs text-muted">{own}</span>}
        <div className="text-xs text-muted sm:hidden">{reasons}</div>
      </td>
      <td className={`whitespace-nowrap ${colour}`}>{word}</td>
      <td className="font-mono text-xs">{part.version || <span className="text-muted">not told</span>}</td>
      <td className="text-muted max-sm:hidden">{reasons}</td>
    </tr>
  );
}
