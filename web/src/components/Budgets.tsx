/** Budgets of device-hours: what each allows in its present window, what is used and promised of it, and what is left. */

import { useQuery } from '@tanstack/react-query';
import { useId, useState } from 'react';
import * as ask from '../api/monitoring';
import { me as askMe } from '../api/queries';
import type { Budget } from '../api/types';
import { budgetBar, budgetWords, number } from '../lib/usage';
import { usage as texts } from '../texts/english/usage';
import { fill, filled, textOf } from '../texts/fill';
import { RemoveBudget, SetBudget, TopUpBudget } from './BudgetDialogs';
import { CommandLine } from './Copy';
import { Empty, Fault, Skeleton } from './Notices';
import { Ago, Until } from './Time';

const HEIGHT = 14;
const TONES: Record<string, string> = { warned: 'text-wait', 'used-up': 'text-fail' };

type Asking = { change: 'set' | 'top-up' | 'remove'; of: Budget } | { change: 'new'; of: null };

export function Budgets() {
  const list = useQuery(ask.budgets);
  const admin = useQuery(askMe).data?.role === 'admin';
  const [asking, setAsking] = useState<Asking | null>(null);
  const close = () => setAsking(null);
  return (
    <>
      <div className="mt-7 flex items-end gap-3 border-b border-line">
        <h2 className="heading grow !border-b-0">
          {texts.budgets}
          <span className="text-xs font-normal text-muted">{texts.deviceHoursEach}</span>
        </h2>
        {admin && (
          <button type="button" className="btn mb-1.5 !h-7" onClick={() => setAsking({ change: 'new', of: null })}>
            {texts.newBudget}
          </button>
        )}
      </div>
      {list.error && !list.data && <Fault error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && <Skeleton rows={2} />}
      {list.data && list.data.items.length === 0 && (
        <Empty title={texts.thereBudgets} line="corral budget set queue research week 500">
          {texts.budgetBoundsWhat}
        </Empty>
      )}
      {list.data && list.data.items.length > 0 && (
        <>
          <table className="grid-table" aria-label={texts.budgets}>
            <thead>
              <tr>
                <th>{texts.budget}</th>
                <th className="w-2/5 max-md:hidden">{texts.usedAndPromised}</th>
                <th className="num max-sm:hidden">{texts.used}</th>
                <th className="num max-sm:hidden">{texts.promised}</th>
                <th className="num">{texts.left}</th>
                <th className="num max-md:hidden">{texts.allowed}</th>
                <th>{texts.state}</th>
                {admin && (
                  <th>
                    <span className="sr-only">{texts.actions}</span>
                  </th>
                )}
              </tr>
            </thead>
            <tbody>
              {list.data.items.map((budget) => (
                <Row key={`${budget.kind} ${budget.name} ${budget.window}`} budget={budget} onAsk={admin ? (change) => setAsking({ change, of: budget }) : undefined} />
              ))}
            </tbody>
          </table>
          <Legend />
        </>
      )}
      <div className="flex justify-end pt-3">
        <CommandLine line="corral budget" />
      </div>
      {(asking?.change === 'new' || asking?.change === 'set') && <SetBudget of={asking.of} onClose={close} />}
      {asking?.change === 'top-up' && <TopUpBudget of={asking.of} onClose={close} />}
      {asking?.change === 'remove' && <RemoveBudget of={asking.of} onClose={close} />}
    </>
  );
}

interface RowProps {
  budget: Budget;
  /** Given to those who may change it. */
  onAsk?: (change: 'set' | 'top-up' | 'remove') => void;
}

function Row({ budget, onAsk }: RowProps) {
  const named = namesOf(budget);
  const added = budget.topUps.reduce((total, each) => total + each.deviceHours, 0);
  return (
    <tr data-budget={`${budget.kind}/${budget.name}/${budget.window}`}>
      <td>
        <span className="[overflow-wrap:anywhere]">
          <span className="text-muted">{named.kind}</span> {budget.name}
        </span>
        <div className="text-xs text-muted">
          {filled(budget.whenUsedUp === 'hold' ? texts.eachNewOneHolds : texts.eachNewOne, { window: named.window, until: <Until at={budget.end} /> })}
        </div>
        <div className="pt-1 md:hidden">
          <Bar budget={budget} />
        </div>
        <History budget={budget} />
      </td>
      <td className="max-md:hidden">
        <Bar budget={budget} />
      </td>
      <td className="num max-sm:hidden">{number(budget.used, 1)}</td>
      <td className="num text-muted max-sm:hidden">{number(budget.promised, 1)}</td>
      <td className="num font-medium">{number(budget.left, 1)}</td>
      <td className="num text-muted max-md:hidden">
        {number(budget.allowed, 1)}
        {added > 0 && <div className="text-xs">{fill(texts.added, { added: number(added, 1) })}</div>}
      </td>
      <td className={`whitespace-nowrap ${TONES[budget.state] ?? 'text-muted'}`}>{textOf(texts.states, budget.state)}</td>
      {onAsk && (
        <td className="text-right">
          <div className="flex flex-wrap justify-end gap-x-3">
            {ACTIONS.map((change) => (
              <button key={change} type="button" className="link" onClick={() => onAsk(change)} aria-label={fill(texts.each, { word: texts.budgetActions[change], ...named })}>
                {texts.budgetActions[change]}
              </button>
            ))}
          </div>
        </td>
      )}
    </tr>
  );
}

const ACTIONS = ['top-up', 'set', 'remove'] as const;

/** Whose budget it is and its window, as texts have them. */
const namesOf = ({ kind, name, window }: Budget) => ({ kind: textOf(texts.kinds, kind), name, window: textOf(texts.windows, window) });

/** Who set it and who added to it in this window, when and why. */
function History({ budget }: { budget: Budget }) {
  return (
    <details className="pt-0.5 text-xs text-muted">
      <summary aria-label={fill(texts.whoChangedEach, namesOf(budget))}>{texts.whoChangedIt}</summary>
      <ul className="space-y-0.5 py-1 [overflow-wrap:anywhere]">
        <li>
          {filled(texts.setDeviceHours, { setBy: budget.setBy, deviceHours: number(budget.deviceHours, 1), time: <Ago at={budget.setAt} /> })}
        </li>
        {budget.topUps.map((each) => (
          <li key={`${each.at} ${each.actor} ${each.deviceHours}`}>
            {filled(texts.addedBy, { actor: each.actor, deviceHours: number(each.deviceHours, 1), time: <Ago at={each.at} />, reason: each.reason })}
          </li>
        ))}
      </ul>
    </details>
  );
}

function Bar({ budget }: { budget: Budget }) {
  const { used, promised, warn } = budgetBar(budget);
  const at = (part: number) => `${(part * 100).toFixed(2)}%`;
  const words = budgetWords(budget);
  const stripes = useId();
  return (
    <svg role="img" aria-label={words} width="100%" height={HEIGHT} className="block min-w-24">
      <title>{words}</title>
      <Stripes id={stripes} />
      <rect x={0.5} y={1.5} width="calc(100% - 1px)" height={HEIGHT - 3} fill="var(--sunken)" stroke="var(--line-strong)" />
      <rect x={0} y={1} width={at(used)} height={HEIGHT - 2} fill="var(--accent)" />
      {promised > 0 && <rect x={at(used)} y={1} width={at(promised)} height={HEIGHT - 2} fill={`url(#${stripes})`} />}
      <rect x={at(warn)} y={0} width={2} height={HEIGHT} fill="var(--wait)" />
    </svg>
  );
}

/** A pattern of its own for each bar: one that is defined in a hidden bar is drawn nowhere. */
function Stripes({ id }: { id: string }) {
  return (
    <defs>
      <pattern id={id} width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect width="5" height="5" fill="var(--accent-ground)" />
        <path d="M1 0v5" stroke="var(--accent)" strokeWidth="2" />
      </pattern>
    </defs>
  );
}

const KEYS = [
  ['used', <rect key="a" y={2} width={16} height={10} fill="var(--accent)" />],
  ['promised', <rect key="b" y={2} width={16} height={10} fill="url(#promised)" />],
  ['warned', <rect key="c" x={7} y={0} width={2} height={14} fill="var(--wait)" />],
] as const;

function Legend() {
  return (
    <ul aria-label={texts.whatBarsBudgets} className="flex flex-wrap gap-x-5 gap-y-1 pt-3 pl-2.5 text-2xs text-muted max-md:hidden">
      {KEYS.map(([word, shape]) => (
        <li key={word} className="flex items-center gap-1.5">
          <svg width={16} height={14} aria-hidden>
            <Stripes id="promised" />
            {shape}
          </svg>
          {texts.legend[word]}
        </li>
      ))}
    </ul>
  );
}
