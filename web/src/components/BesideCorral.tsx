/** A cluster that others share with Corral: its own queues, and the applications in them that are not Corral's. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/queries';
import type { Amounts, ClusterUse } from '../api/types';
import { bytes, cpus } from '../lib/format';
import { counts } from '../texts/english/counts';
import { nodes as texts } from '../texts/english/nodes';
import { counted, fill } from '../texts/fill';
import { CommandLine } from './Copy';
import { Ago } from './Time';

/** Nothing where no engine shares its cluster, or while the scheduler does not answer. */
export function BesideCorral() {
  const { data } = useQuery(ask.clusterUse);
  return (data?.items ?? []).map((use) => <Shared key={use.engine} use={use} />);
}

function Shared({ use }: { use: ClusterUse }) {
  return (
    <section aria-label={fill(texts.theClusterOf, { engine: use.engine })} className="pt-6">
      <h2 className="text-sm font-semibold">{fill(texts.besideCorralOn, { engine: use.engine })}</h2>
      {use.trouble ? (
        <p role="status" className="pt-1 text-xs text-wait">
          ◌ {use.trouble}
        </p>
      ) : (
        <>
          <p className="pt-1 text-xs text-muted">
            {fill(texts.othersUseCorral, { others: amounts(use.others), corral: amounts(use.corral) })}
          </p>
          <Queues use={use} />
          {use.applications.length > 0 && <Applications use={use} />}
          {use.leftOut > 0 && <p className="pt-1 text-xs text-muted">{fill(texts.notListed, { applications: counted(counts.moreApplications, use.leftOut) })}</p>}
        </>
      )}
      <p className="pt-2">
        <CommandLine line="corral nodes --others" />
      </p>
    </section>
  );
}

function Queues({ use }: { use: ClusterUse }) {
  return (
    <table className="grid-table mt-3" aria-label={fill(texts.queuesOf, { engine: use.engine })}>
      <thead>
        <tr>
          <th>{fill(texts.queueOf, { engine: use.engine })}</th>
          <th className="num">{texts.promised}</th>
          <th className="num">{texts.used}</th>
          <th className="num">{texts.devices}</th>
          <th className="num max-md:hidden">{texts.processors}</th>
          <th className="num max-md:hidden">{texts.memory}</th>
          <th className="num max-sm:hidden">{texts.running}</th>
          <th className="num max-sm:hidden">{texts.waiting}</th>
        </tr>
      </thead>
      <tbody>
        {use.queues.map((queue) => (
          <tr key={queue.name}>
            <td>
              {queue.name}
              {queue.corral && <span className="text-muted"> {texts.corralsJobs}</span>}
              {queue.state && queue.state !== 'running' && <span className="text-wait"> · {queue.state}</span>}
            </td>
            <td className="num">{queue.capacity}%</td>
            <td className="num">{queue.usedPercent}%</td>
            <td className="num">{queue.used.devices}</td>
            <td className="num max-md:hidden">{cpus(queue.used.cpuMillis)}</td>
            <td className="num max-md:hidden">{bytes(queue.used.memoryBytes)}</td>
            <td className="num max-sm:hidden">{queue.running}</td>
            <td className="num max-sm:hidden">{queue.pending}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Applications({ use }: { use: ClusterUse }) {
  return (
    <table className="grid-table mt-3" aria-label={fill(texts.otherApplicationsOf, { engine: use.engine })}>
      <thead>
        <tr>
          <th>{texts.application}</th>
          <th className="max-sm:hidden">{texts.user}</th>
          <th>{texts.queue}</th>
          <th className="max-md:hidden">{texts.kind}</th>
          <th className="num">{texts.devices}</th>
          <th className="num max-md:hidden">{texts.processors}</th>
          <th className="num">{texts.memory}</th>
          <th className="num max-sm:hidden">{texts.since}</th>
        </tr>
      </thead>
      <tbody>
        {use.applications.map((app) => (
          <tr key={app.id}>
            <td title={app.id}>
              {app.name || app.id}
              {app.state !== 'running' && <span className="text-muted"> · {app.state}</span>}
            </td>
            <td className="max-sm:hidden">{app.user}</td>
            <td>{app.queue}</td>
            <td className="max-md:hidden">{app.kind}</td>
            <td className="num">{app.used.devices}</td>
            <td className="num max-md:hidden">{cpus(app.used.cpuMillis)}</td>
            <td className="num">{bytes(app.used.memoryBytes)}</td>
            <td className="num max-sm:hidden">
              <Ago at={app.startedAt || null} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function amounts(used: Amounts): string {
  return fill(texts.amounts, { devices: counted(counts.devices, used.devices), processors: cpus(used.cpuMillis), memory: bytes(used.memoryBytes) });
}
