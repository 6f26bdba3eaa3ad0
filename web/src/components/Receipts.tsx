/** The times that a job had to yield: to whom, under which rule, what it cost, when it was back. */

import { Link } from '@tanstack/react-router';
import type { Receipt } from '../api/types';
import { count } from '../lib/format';
import { absolute, duration } from '../lib/time';
import { Ago, Span, useNow } from './Time';

/** Device-seconds in the largest unit that fits. */
export function deviceTime(seconds: number): string {
  if (seconds <= 0) return 'nothing';
  const [unit, size] = seconds >= 3600 ? (['hour', 3600] as const) : seconds >= 60 ? (['minute', 60] as const) : (['second', 1] as const);
  const amount = seconds / size;
  return `${amount.toLocaleString('en', { maximumFractionDigits: amount < 10 ? 1 : 0 })} device-${unit}s`;
}

export function Receipts({ receipts }: { receipts: Receipt[] }) {
  return (
    <section aria-label="Had to yield">
      <h2 className="heading">
        Had to yield
        <span className="text-xs font-normal text-muted">no failure, and counted as none</span>
      </h2>
      <ReceiptTable receipts={receipts} />
    </section>
  );
}

/** `named`: with the job, where receipts of several are listed. */
export function ReceiptTable({ receipts, named = false }: { receipts: Receipt[]; named?: boolean }) {
  return (
    <table className="grid-table">
      <thead>
        <tr>
          <th>Ago</th>
          {named && <th>Job</th>}
          <th className={named ? 'max-sm:hidden' : ''}>Rule</th>
          <th>Why</th>
          <th className="max-sm:hidden">Gave up</th>
          <th className="max-md:hidden">Lost at most</th>
          <th>Back</th>
        </tr>
      </thead>
      <tbody>
        {receipts.map((receipt) => (
          <tr key={receipt.id} data-receipt={receipt.id}>
            <td className="whitespace-nowrap">
              <Ago at={receipt.at} />
            </td>
            {named && (
              <td className="max-w-40 truncate max-sm:max-w-28">
                <Link to="/jobs/$ref" params={{ ref: receipt.job }} className="font-medium hover:underline">
                  {receipt.name}
                </Link>
                <span className="block truncate text-xs text-muted">
                  {receipt.user} · {receipt.queue}
                </span>
              </td>
            )}
            <td className={named ? 'whitespace-nowrap max-sm:hidden' : 'whitespace-nowrap'}>{receipt.rule}</td>
            <td>
              {named && <span className="block text-xs text-muted sm:hidden">{receipt.rule}</span>}
              {receipt.message}
              {receipt.byJob && (
                <>
                  {' '}
                  <Link to="/jobs/$ref" params={{ ref: receipt.byJob }} className="link">
                    its job
                  </Link>
                </>
              )}
            </td>
            <td className="max-sm:hidden">{receipt.tasks.length > 0 ? receipt.tasks.join(', ') : count(receipt.devices, 'device')}</td>
            <td className="whitespace-nowrap max-md:hidden">{deviceTime(receipt.costDeviceSeconds)}</td>
            <td className="sm:whitespace-nowrap">
              <Back receipt={receipt} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** What ends an absence that no estimate ends, by rule. */
const UNTIL: Record<string, string> = { suspended: 'when it is resumed', budget: 'when its budget allows more' };

/** When a job that is away is likely back, as was thought when it yielded. */
function Away({ receipt: { rule, backAt } }: { receipt: Receipt }) {
  const now = useNow();
  if (!backAt) return <span className="text-muted">{UNTIL[rule] ?? 'not yet: unknown when'}</span>;
  const left = (Date.parse(backAt) - now) / 1000;
  return (
    <time dateTime={backAt} title={absolute(backAt)} className="text-muted">
      {left > 0 ? `not yet: likely in ${duration(Math.ceil(left))}` : 'not yet: later than thought'}
    </time>
  );
}

function Back({ receipt }: { receipt: Receipt }) {
  if (receipt.state === 'ended') return <span className="text-muted">never: the job ended</span>;
  if (receipt.state === 'away') return <Away receipt={receipt} />;
  return (
    <>
      after <Span from={receipt.at} to={receipt.returnedAt} />
    </>
  );
}
