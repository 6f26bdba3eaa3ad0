/** A cluster that others share with Corral: its own queues, and the applications in them that are not Corral's. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/queries';
import type { Amounts, ClusterUse } from '../api/types';
import { bytes, count, cpus } from '../lib/format';
import { CommandLine } from './Copy';
import { Ago } from './Time';

/** Nothing where no engine shares its cluster, or while the scheduler does not answer. */
export function BesideCorral() {
  const { data } = useQuery(ask.clusterUse);
  return (data?.items ?? []).map((use) => <Shared key={use.engine} use={use} />);
}

function Shared({ use }: { use: ClusterUse }) {
  return (
    <section aria-label={`The cluster of ${use.engine}`} className="pt-6">
      <h2 className="text-sm font-semibold">Beside Corral on {use.engine}</h2>
      {use.trouble ? (
        <p role="status" className="pt-1 text-xs text-wait">
          ◌ {use.trouble}
        </p>
      ) : (
        <>
          <p className="pt-1 text-xs text-muted">
            Others use {amounts(use.others)}; Corral uses {amounts(use.corral)}.
          </p>
          <Queues use={use} />
          {use.applications.length > 0 && <Applications use={use} />}
          {use.leftOut > 0 && <p className="pt-1 text-xs text-muted">{count(use.leftOut, 'more application')}, not listed.</p>}
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
    <table className="grid-table mt-3" aria-label={`Queues of ${use.engine}`}>
      <thead>
        <tr>
          <th>Queue of {use.engine}</th>
          <th className="num">Promised</th>
          <th className="num">Used</th>
          <th className="num">Devices</th>
          <th className="num max-md:hidden">Processors</th>
          <th className="num max-md:hidden">Memory</th>
          <th className="num max-sm:hidden">Running</th>
          <th className="num max-sm:hidden">Waiting</th>
        </tr>
      </thead>
      <tbody>
        {use.queues.map((queue) => (
          <tr key={queue.name}>
            <td>
              {queue.name}
              {queue.corral && <span className="text-muted"> · Corral’s jobs</span>}
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
    <table className="grid-table mt-3" aria-label={`Other applications of ${use.engine}`}>
      <thead>
        <tr>
          <th>Application</th>
          <th className="max-sm:hidden">User</th>
          <th>Queue</th>
          <th className="max-md:hidden">Kind</th>
          <th className="num">Devices</th>
          <th className="num max-md:hidden">Processors</th>
          <th className="num">Memory</th>
          <th className="num max-sm:hidden">Since</th>
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
  return `${count(used.devices, 'device')}, ${cpus(used.cpuMillis)} processors and ${bytes(used.memoryBytes)}`;
}
