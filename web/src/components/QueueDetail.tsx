/** One queue in full: every amount, the cells that it owns, and what it has lent and borrowed. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import * as overview from '../api/overview';
import type { CellShare, LedgerLine, Queue, QueueStanding } from '../api/types';
import { amount, resources } from '../lib/shares';
import { wide } from '../lib/wide';
import { counts } from '../texts/english/counts';
import { queues as texts } from '../texts/english/queues';
import { shares } from '../texts/english/shares';
import { counted, fill } from '../texts/fill';
import { QueueManaging } from './QueueManaging';
import { QueueWeeks } from './QueueWeeks';
import { deviceTime } from './Receipts';
import { Ago } from './Time';

export function QueueDetail({ queue }: { queue: Queue }) {
  const { standing } = queue;
  const { data: ledger } = useQuery(overview.ledger(queue.name));
  return (
    <section aria-label={fill(texts.queueNamed, { name: queue.name })} className="pt-6">
      <h2 className="heading flex-wrap">
        {queue.name}
        <span className="text-xs font-normal text-muted">{standing && said(standing)}</span>
        <span className="grow" />
        <Link to="/configuration" search={{ document: `Queue/${queue.name}` }} className="link text-xs font-normal">
          {texts.itsDocument}
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
  const words = [fill(texts.gangsRunning, { gangs: counted(counts.gangs, standing.running) })];
  if (standing.guests > 0) words.push(counted(texts.guests, standing.guests));
  words.push(counted(texts.waitingGangs, standing.waiting), fill(texts.weightOf, { weight: standing.weight }));
  if (standing.parent) words.push(fill(texts.belowQueue, { parent: standing.parent }));
  return words.join(', ');
}

const COLUMNS = ['guaranteed', 'deserved', 'limit', 'fair', 'used', 'borrowed', 'lent', 'wanted'] as const;

function Amounts({ standing }: { standing: QueueStanding }) {
  return (
    <div {...wide} className="min-w-0 overflow-x-auto">
      <table className="grid-table">
        <thead>
          <tr>
            <th>{texts.resource}</th>
            {COLUMNS.map((each) => (
              <th key={each} className="num">
                {texts.amounts[each]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {resources([standing]).map((resource) => (
            <tr key={resource}>
              <td>{resource}</td>
              {COLUMNS.map((field) => (
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
      <table className="grid-table" aria-label={texts.cellsOwns}>
        <thead>
          <tr>
            <th>{texts.cellsOwns}</th>
            <th className="num">{texts.owned}</th>
            <th className="num" title={texts.ownJobsThem}>
              {texts.bound}
            </th>
            <th className="num" title={texts.couldTakeThem}>
              {texts.free}
            </th>
            <th className="num" title={texts.guestsThemWould}>
              {texts.lent}
            </th>
            <th className="num" title={texts.badAbsentHardware}>
              {texts.missing}
            </th>
          </tr>
        </thead>
        <tbody>
          {cells.map((cell) => (
            <tr key={`${cell.engine} ${cell.level} ${cell.model}`}>
              <td>
                {cell.level} <span className="text-muted">{fill(texts.cellsOf, { amount: cell.model ? counted(shares.modelDevices, cell.devices, { model: cell.model }) : counted(counts.devices, cell.devices), engine: cell.engine })}</span>
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
      {pinned.length > 0 && <p className="pt-2 pl-2.5 font-mono text-xs text-muted">{fill(texts.pinned, { pinned: pinned.join(', ') })}</p>}
    </div>
  );
}

function Ledger({ lent, borrowed }: { lent: LedgerLine[]; borrowed: LedgerLine[] }) {
  const lines = [...lent.map((line) => ({ ...line, way: 'lent' as const })), ...borrowed.map((line) => ({ ...line, way: 'borrowed' as const }))];
  if (lines.length === 0) return <p className="py-1.5 pl-2.5 text-sm text-muted">{texts.hasLentNothing}</p>;
  return (
    <div {...wide} className="overflow-x-auto">
      <table className="grid-table" aria-label={texts.ledger}>
        <thead>
          <tr>
            <th>{texts.ledger}</th>
            <th className="num">{texts.inAll}</th>
            <th className="num">{texts.devicesNow}</th>
            <th>{texts.since}</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <tr key={`${line.way} ${line.queue}`}>
              <td>
                <span className="text-muted">{texts.ways[line.way]}</span> {line.queue || texts.devicesQueue}
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
