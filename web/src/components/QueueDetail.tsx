/** One queue in full: every amount, the cells that it owns, and what it has lent and borrowed. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import * as overview from '../api/overview';
import type { CellShare, LedgerLine, Queue, QueueStanding } from '../api/types';
import { count } from '../lib/format';
import { amount, resources } from '../lib/shares';
import { wide } from '../lib/wide';
import { QueueManaging } from './QueueManaging';
import { QueueWeeks } from './QueueWeeks';
import { deviceTime } from './Receipts';
import { Ago } from './Time';

export function QueueDetail({ queue }: { queue: Queue }) {
  const { standing } = queue;
  const { data: ledger } = useQuery(overview.ledger(queue.name));
  return (
    <section aria-label={`Queue ${queue.name}`} className="pt-6">
      <h2 className="heading flex-wrap">
        {queue.name}
        <span className="text-xs font-normal text-muted">{standing && said(standing)}</span>
        <span className="grow" />
        <Link to="/configuration" search={{ document: `Queue/${queue.name}` }} className="link text-xs font-normal">
          its document
        </Link>
      </h2>
      <QueueManaging queue={queue} />
      <div className="grid gap-x-10 gap-y-6 pt-1 min-[1180px]:grid-cols-2">
        {standing && <Amounts standing={standing} />}
        <div className="min-w-0 space-y-6">
          {standing && standing.cells.length > 0 && <Owned cells={standing.cells} pinned={standing.pinned} />}
          {ledger && <Ledger lent={ledger.lent} borrowed={ledger.borrowed} />}
        </div>
      </div>
      <QueueWeeks queue={queue.name} />
    </section>
  );
}

function said(standing: QueueStanding): string {
  const words = [count(standing.running, 'gang') + ' running'];
  if (standing.guests > 0) words.push(`${standing.guests} of them as guests`);
  words.push(`${standing.waiting.toLocaleString('en')} waiting`, `weight ${standing.weight}`);
  if (standing.parent) words.push(`below ${standing.parent}`);
  return words.join(', ');
}

const COLUMNS = [
  ['guaranteed', 'Guaranteed'],
  ['deserved', 'Deserves'],
  ['limit', 'Limit'],
  ['fair', 'Fair share'],
  ['used', 'Used'],
  ['borrowed', 'Borrowed'],
  ['lent', 'Lent'],
  ['wanted', 'Wanted'],
] as const;

function Amounts({ standing }: { standing: QueueStanding }) {
  return (
    <div {...wide} className="min-w-0 overflow-x-auto">
      <table className="grid-table">
        <thead>
          <tr>
            <th>Resource</th>
            {COLUMNS.map(([, word]) => (
              <th key={word} className="num">
                {word}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {resources([standing]).map((resource) => (
            <tr key={resource}>
              <td>{resource}</td>
              {COLUMNS.map(([field]) => (
                <td key={field} className="num">
                  {standing[field][resource] ? amount(resource, standing[field][resource]) : <span className="text-faint">–</span>}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Owned({ cells, pinned }: { cells: CellShare[]; pinned: string[] }) {
  return (
    <div {...wide} className="overflow-x-auto">
      <table className="grid-table" aria-label="Cells that it owns">
        <thead>
          <tr>
            <th>Cells that it owns</th>
            <th className="num">Owned</th>
            <th className="num" title="Its own jobs are in them, or they are pinned">
              Bound
            </th>
            <th className="num" title="It could take them at once">
              Free
            </th>
            <th className="num" title="Guests in them would yield first">
              Lent
            </th>
            <th className="num" title="Bad or absent hardware">
              Missing
            </th>
          </tr>
        </thead>
        <tbody>
          {cells.map((cell) => (
            <tr key={`${cell.engine} ${cell.level} ${cell.model}`}>
              <td>
                {cell.level} <span className="text-muted">of {count(cell.devices, cell.model ? `${cell.model} device` : 'device')}, {cell.engine}</span>
              </td>
              {[cell.owned, cell.bound, cell.free, cell.lent].map((each, at) => (
                <td key={at} className="num">
                  {each}
                </td>
              ))}
              <td className={cell.missing ? 'num text-fail' : 'num'}>{cell.missing ? `✕ ${cell.missing}` : 0}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {pinned.length > 0 && <p className="pt-2 pl-2.5 font-mono text-xs text-muted">pinned: {pinned.join(', ')}</p>}
    </div>
  );
}

function Ledger({ lent, borrowed }: { lent: LedgerLine[]; borrowed: LedgerLine[] }) {
  const lines = [...lent.map((line) => ({ ...line, way: 'lent to' })), ...borrowed.map((line) => ({ ...line, way: 'borrowed from' }))];
  if (lines.length === 0) return <p className="py-1.5 pl-2.5 text-sm text-muted">It has lent nothing and borrowed nothing.</p>;
  return (
    <div {...wide} className="overflow-x-auto">
      <table className="grid-table" aria-label="Ledger">
        <thead>
          <tr>
            <th>Ledger</th>
            <th className="num">In all</th>
            <th className="num">Devices now</th>
            <th>Since</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <tr key={`${line.way} ${line.queue}`}>
              <td>
                <span className="text-muted">{line.way}</span> {line.queue || 'devices of no queue'}
              </td>
              <td className="num">{deviceTime(line.deviceSeconds)}</td>
              <td className="num">{amount('devices', line.devices)}</td>
              <td className="text-muted">
                <Ago at={line.since} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
