/** Last values of benchmarks beside their medians and data sheets, and two runs beside each other. */

import type { ReactNode } from 'react';
import type { BenchmarkComparison, BenchmarkedNode, BenchmarkStanding } from '../api/types';
import { change, figure } from '../lib/benchmarks';
import { wide } from '../lib/wide';
import { benchmarks as texts } from '../texts/english/benchmarks';
import { counted, fill, number } from '../texts/fill';
import { Ago } from './Time';

function Table({ label, head, children }: { label: string; head: readonly (keyof typeof texts.columns)[]; children: ReactNode }) {
  return (
    <div {...wide} className="overflow-x-auto">
      <table aria-label={label} className="w-full text-sm">
        <thead>
          <tr className="border-b border-line-strong text-left text-xs text-muted">
            {head.map((column) => (
              <th key={column} scope="col" className="px-2 py-1.5 font-normal whitespace-nowrap">
                {texts.columns[column]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

const Cell = ({ children }: { children: ReactNode }) => <td className="px-2 py-1.5 whitespace-nowrap">{children}</td>;

function Named({ name, chosen, onChoose }: { name: string; chosen: boolean; onChoose: () => void }) {
  return (
    <th scope="row" className="min-w-40 px-2 py-1.5 text-left font-normal">
      <button type="button" aria-pressed={chosen} onClick={onChoose} className="text-left break-all hover:underline aria-pressed:text-accent">
        {name}
      </button>
    </th>
  );
}

export function BenchmarkedNodes({ nodes, node, onNode }: { nodes: readonly BenchmarkedNode[]; node: string; onNode: (node: string) => void }) {
  return (
    <Table label={texts.measuredNodes} head={['node', 'sku', 'measurements', 'slow', 'measured', 'findings']}>
      {nodes.map((each) => (
        <tr key={each.node} className="border-b border-line">
          <Named name={each.node} chosen={each.node === node} onChoose={() => onNode(each.node === node ? '' : each.node)} />
          <Cell>{each.sku || '–'}</Cell>
          <Cell>{number(each.measurements)}</Cell>
          <Cell>{each.slow > 0 ? <span className="text-fail">◆ {number(each.slow)}</span> : texts.none}</Cell>
          <Cell>
            <Ago at={each.at} />
          </Cell>
          <td className="min-w-64 px-2 py-1.5 text-xs text-muted">{each.findings[0]}</td>
        </tr>
      ))}
    </Table>
  );
}

interface Standings {
  label: string;
  /** What tells the rows apart. */
  by: 'node' | 'metric';
  items: readonly BenchmarkStanding[];
  chosen: string;
  onChoose: (name: string) => void;
}

export function BenchmarkStandingTable({ label, by, items, chosen, onChoose }: Standings) {
  return (
    <Table label={label} head={[by === 'node' ? 'node' : 'measurement', 'value', 'median', 'change', 'dataSheet', 'measured', 'finding']}>
      {items.map((each) => (
        <tr key={`${each.node} ${each.metric}`} className="border-b border-line">
          <Named name={each[by]} chosen={each[by] === chosen} onChoose={() => onChoose(each[by])} />
          <Cell>
            {figure(each.value)} <span className="text-muted">{each.unit}</span>
          </Cell>
          <Cell>{each.baseline === null ? '–' : counted(texts.medianOf, each.alike + 1, { value: figure(each.baseline) })}</Cell>
          <Cell>{change(each.change)}</Cell>
          <Cell>{each.expected === null ? '–' : <span title={each.source}>{fill(texts.atLeast, { value: figure(each.expected), least: figure(each.least) })}</span>}</Cell>
          <Cell>
            <Ago at={each.at} />
          </Cell>
          <td className="min-w-64 px-2 py-1.5 text-xs text-fail">{each.findings.map((finding) => `◆ ${finding}`).join('; ')}</td>
        </tr>
      ))}
    </Table>
  );
}

export function BenchmarkChanges({ found }: { found: BenchmarkComparison }) {
  return (
    <Table label={texts.runsCompared} head={['measurement', 'before', 'after', 'gain']}>
      {found.changes.map((each) => (
        <tr key={each.metric} className="border-b border-line">
          <th scope="row" className="min-w-40 px-2 py-1.5 text-left font-normal break-all">
            {each.metric}
          </th>
          <Cell>
            {figure(each.before)} <span className="text-muted">{each.unit}</span>
          </Cell>
          <Cell>
            {figure(each.after)} <span className="text-muted">{each.unit}</span>
          </Cell>
          <Cell>{each.gain !== null && each.gain <= -0.05 ? <span className="text-fail">◆ {change(each.gain)}</span> : change(each.gain)}</Cell>
        </tr>
      ))}
    </Table>
  );
}
