/** A report on use as a table, with a row for all where there are several. */

import { Link } from '@tanstack/react-router';
import type { UsageReport, UsageRow } from '../api/types';
import { hours, idleHours, kilowattHours, measuredWords, nameOf, number, readBy, usedHours, usedPart, wastedPart, type By } from '../lib/usage';
import { usage as texts } from '../texts/english/usage';
import { counted, fill, textOf } from '../texts/fill';

export function UseTable({ report }: { report: UsageReport }) {
  const by = readBy(report.by);
  const costs = report.currency !== '';
  const energy = report.total.energyJoules > 0;
  const said = measuredWords(report.total);
  return (
    <>
      <table className="grid-table" aria-label={fill(texts.useBy, { by: textOf(texts.by, by) })}>
        <thead>
          <tr>
            <th className="capitalize">{textOf(texts.by, by)}</th>
            <th className="num">{texts.deviceHours}</th>
            <th className="num max-sm:hidden">{texts.usedPercent}</th>
            <th className="num max-md:hidden">{texts.lost}</th>
            <th className="num max-md:hidden">{texts.idle}</th>
            <th className="num max-sm:hidden">{texts.wasted}</th>
            <th className="num max-md:hidden">{texts.taskHours}</th>
            <th className="num max-lg:hidden">{texts.cpuHours}</th>
            <th className="num max-xl:hidden">{texts.cpuUsed}</th>
            <th className="num max-lg:hidden">{texts.gibHours}</th>
            <th className="num max-xl:hidden">{texts.gibUsed}</th>
            {energy && <th className="num max-xl:hidden">{texts.kwh}</th>}
            {costs && <th className="num">{report.currency}</th>}
          </tr>
        </thead>
        <tbody>
          {report.items.map((row) => (
            <Row key={row.key} row={row} by={by} costs={costs} energy={energy} />
          ))}
          {report.leftOut > 0 && (
            <tr>
              <td className="text-muted">{counted(texts.more, report.leftOut)}</td>
              <td colSpan={10 + Number(energy) + Number(costs)} />
            </tr>
          )}
          {report.items.length > 1 && <Row row={report.total} by={by} costs={costs} energy={energy} all />}
        </tbody>
      </table>
      {said && <p className="px-2.5 pt-1 text-xs text-muted max-sm:hidden">{said}</p>}
    </>
  );
}

function Row({ row, by, costs, energy, all = false }: { row: UsageRow; by: By; costs: boolean; energy: boolean; all?: boolean }) {
  return (
    <tr data-use={all ? 'all' : row.key} className={all ? 'font-medium' : undefined}>
      <td className="[overflow-wrap:anywhere]">
        {all ? (
          texts.all
        ) : by === 'job' && row.key ? (
          <Link to="/jobs/$ref" params={{ ref: row.key }} className="link">
            {nameOf(by, row)}
          </Link>
        ) : (
          nameOf(by, row)
        )}
      </td>
      <td className="num">{hours(row.deviceSeconds)}</td>
      <td className="num text-muted max-sm:hidden">{usedPart(row)}</td>
      <td className="num text-muted max-md:hidden">{hours(row.lostDeviceSeconds)}</td>
      <td className="num text-muted max-md:hidden">{idleHours(row)}</td>
      <td className="num text-muted max-sm:hidden">{wastedPart(row)}</td>
      <td className="num text-muted max-md:hidden">{hours(row.taskSeconds)}</td>
      <td className="num text-muted max-lg:hidden">{hours(row.cpuSeconds)}</td>
      <td className="num text-muted max-xl:hidden">{usedHours(row, row.usedCpuSeconds)}</td>
      <td className="num text-muted max-lg:hidden">{hours(row.memoryGibSeconds)}</td>
      <td className="num text-muted max-xl:hidden">{usedHours(row, row.usedMemoryGibSeconds)}</td>
      {energy && <td className="num text-muted max-xl:hidden">{kilowattHours(row)}</td>}
      {costs && <td className="num">{number(row.cost ?? 0)}</td>}
    </tr>
  );
}
