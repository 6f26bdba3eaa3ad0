/** The cluster in one line: what is held of what there is. */

import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Top } from '../api/types';
import { bytes, cpus } from '../lib/format';
import { map as texts } from '../texts/english/map';
import { fill } from '../texts/fill';

export function Totals({ top }: { top: Top }) {
  const { total, free } = top;
  return (
    <dl className="flex flex-wrap items-end gap-x-8 gap-y-3 max-sm:grid max-sm:grid-cols-3 max-sm:gap-x-4">
      <Gauge label={texts.devices} used={total.devices - free.devices} total={total.devices} show={String} />
      <Gauge label={texts.processors} used={total.cpuMillis - free.cpuMillis} total={total.cpuMillis} show={cpus} />
      <Gauge label={texts.memory} used={total.memoryBytes - free.memoryBytes} total={total.memoryBytes} show={bytes} />
      <Figure label={texts.running} state="running,starting">
        {top.running}
      </Figure>
      <Figure label={texts.waiting} state="waiting">
        {top.waiting}
      </Figure>
    </dl>
  );
}

interface GaugeProps {
  label: string;
  used: number;
  total: number;
  show: (amount: number) => string;
}

export function Gauge({ label, used, total, show }: GaugeProps) {
  const part = total > 0 ? Math.min(1, Math.max(0, used / total)) : 0;
  return (
    <div className="sm:min-w-32">
      <dt className="label">{label}</dt>
      <dd className="whitespace-nowrap">
        <span className="text-lg font-semibold">{show(used)}</span>
        <span className="text-xs text-muted">
          {' '}
          {fill(texts.of, { show: show(total) })}
          <span className="max-sm:sr-only"> {texts.held}</span>
        </span>
      </dd>
      <div aria-hidden className="mt-1 h-[3px] bg-line">
        <div className="h-full bg-accent transition-[width] duration-500" style={{ width: `${part * 100}%` }} />
      </div>
    </div>
  );
}

function Figure({ label, state, children }: { label: string; state: string; children: ReactNode }) {
  return (
    <div>
      <dt className="label">{label}</dt>
      <dd>
        <Link to="/" search={{ state }} className="text-lg font-semibold hover:underline">
          {children}
        </Link>
      </dd>
      <div aria-hidden className="mt-1 h-[3px]" />
    </div>
  );
}
