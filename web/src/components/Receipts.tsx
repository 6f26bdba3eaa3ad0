/** The times that a job had to yield: to whom, under which rule, what it cost, when it was back. */

import { Link } from '@tanstack/react-router';
import type { Receipt } from '../api/types';
import { absolute, duration } from '../lib/time';
import { counts } from '../texts/english/counts';
import { receipts as texts } from '../texts/english/receipts';
import { counted, fill, filled, number, textOf } from '../texts/fill';
import { Ago, Span, useNow } from './Time';

/** Device-seconds in the largest unit that fits. */
export function deviceTime(seconds: number): string {
  if (seconds <= 0) return texts.nothing;
  const [unit, size] = seconds >= 3600 ? (['hours', 3600] as const) : seconds >= 60 ? (['minutes', 60] as const) : (['seconds', 1] as const);
  const amount = seconds / size;
  return fill(texts.lost[unit], { amount: number(amount, { maximumFractionDigits: amount < 10 ? 1 : 0 }) });
}

export function Receipts({ receipts }: { receipts: Receipt[] }) {
  return (
    <section aria-label={texts.yield}>
      <h2 className="heading">
        {texts.yield}
        <span className="text-xs font-normal text-muted">{texts.noFailureCounted}</span>
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
          <th>{texts.ago}</th>
          {named && <th>{texts.job}</th>}
          <th className={named ? 'max-sm:hidden' : ''}>{texts.rule}</th>
          <th>{texts.why}</th>
          <th className="max-sm:hidden">{texts.gaveUp}</th>
          <th className="max-md:hidden">{texts.lostMost}</th>
          <th>{texts.back}</th>
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
                    {texts.itsJob}
                  </Link>
                </>
              )}
            </td>
            <td className="max-sm:hidden">{receipt.tasks.length > 0 ? receipt.tasks.join(', ') : counted(counts.devices, receipt.devices)}</td>
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

/** When a job that is away is likely back, as was thought when it yielded. */
function Away({ receipt: { rule, backAt } }: { receipt: Receipt }) {
  const now = useNow();
  if (!backAt) return <span className="text-muted">{Object.hasOwn(texts.until, rule) ? textOf(texts.until, rule) : texts.unknownWhen}</span>;
  const left = (Date.parse(backAt) - now) / 1000;
  return (
    <time dateTime={backAt} title={absolute(backAt)} className="text-muted">
      {left > 0 ? fill(texts.likelyIn, { time: duration(Math.ceil(left)) }) : texts.late}
    </time>
  );
}

function Back({ receipt }: { receipt: Receipt }) {
  if (receipt.state === 'ended') return <span className="text-muted">{texts.never}</span>;
  if (receipt.state === 'away') return <Away receipt={receipt} />;
  return (
    <>
      {filled(texts.after, { time: <Span from={receipt.at} to={receipt.returnedAt} /> })}
    </>
  );
}
