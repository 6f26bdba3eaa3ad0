/** A report on use as a table, with a row for all where there are several. */

import { Link } from '@tanstack/react-router';
import type { UsageReport, UsageRow } from '../api/types';
import { hours, lostPart, nameOf, number, readBy, type By } from '../lib/usage';

export function UseTable({ report }: { report: UsageReport }) {
  const by = readBy(report.by);
  const costs = report.currency !== '';
  return (
    <table className="grid-table" aria-label={`Use by ${by}`}>
      <thead>
        <tr>
          <th className="capitalize">{by}</th>
          <th className="num">Device-hours</th>
          <th className="num max-sm:hidden">Lost</th>
          <th className="num max-sm:hidden">Lost, %</th>
          <th className="num max-md:hidden">Task-hours</th>
          <th className="num max-lg:hidden">CPU-hours</th>
          <th className="num max-lg:hidden">GiB-hours</th>
          {costs && <th className="num">{report.currency}</th>}
        </tr>
      </thead>
      <tbody>
        {report.items.map((row) => (
          <Row key={row.key} row={row} by={by} costs={costs} />
        ))}
        {report.leftOut > 0 && (
          <tr>
            <td className="text-muted">{report.leftOut.toLocaleString('en')} more</td>
            <td colSpan={costs ? 7 : 6} />
          </tr>
        )}
        {report.items.length > 1 && <Row row={report.total} by={by} costs={costs} all />}
      </tbody>
    </table>
  );
}

function Row({ row, by, costs, all = false }: { row: UsageRow; by: By; costs: boolean; all?: boolean }) {
  return (
    <tr data-use={all ? 'all' : row.key} className={all ? 'font-medium' : undefined}>
      <td className="[overflow-wrap:anywhere]">
        {all ? (
          'all'
        ) : by === 'job' && row.key ? (
          <Link to="/jobs/$ref" params={{ ref: row.key }} className="link">
            {nameOf(by, row)}
          </Link>
        ) : (
          nameOf(by, row)
        )}
      </td>
      <td className="num">{hours(row.deviceSeconds)}</td>
      <td className="num text-muted max-sm:hidden">{hours(row.lostDeviceSeconds)}</td>
      <td className="num text-muted max-sm:hidden">{lostPart(row)}</td>
      <td className="num text-muted max-md:hidden">{hours(row.taskSeconds)}</td>
      <td className="num text-muted max-lg:hidden">{hours(row.cpuSeconds)}</td>
      <td className="num text-muted max-lg:hidden">{hours(row.memoryGibSeconds)}</td>
      {costs && <td className="num">{number(row.cost ?? 0)}</td>}
    </tr>
  );
}
