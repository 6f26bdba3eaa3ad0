/** Last values of benchmarks beside their medians and data sheets, and two runs beside each other. */

import type { ReactNode } from 'react';
import type { BenchmarkComparison, BenchmarkedNode, BenchmarkStanding } from '../api/types';
import { change, figure } from '../lib/benchmarks';
import { wide } from '../lib/wide';
import { Ago } from './Time';

function Table({ label, head, children }: { label: string; head: readonly string[]; children: ReactNode }) {
  return (
    <div {...wide} className="overflow-x-auto">
      <table aria-label={label} className="w-full text-sm">
        <thead>
          <tr className="border-b border-line-strong text-left text-xs text-muted">
            {head.map((word) => (
              <th key={word} scope="col" className="px-2 py-1.5 font-normal whitespace-nowrap">
                {word}
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
    <Table label="Measured nodes" head={['Node', 'SKU', 'Measurements', 'Below', 'Measured', 'Findings']}>
      {nodes.map((each) => (
        <tr key={each.node} className="border-b border-line">
          <Named name={each.node} chosen={each.node === node} onChoose={() => onNode(each.node === node ? '' : each.node)} />
          <Cell>{each.sku || '–'}</Cell>
          <Cell>{each.measurements}</Cell>
          <Cell>{each.slow > 0 ? <span className="text-fail">◆ {each.slow}</span> : 'none'}</Cell>
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
    <Table label={label} head={[by === 'node' ? 'Node' : 'Measurement', 'Value', 'Median of its SKU', 'Change', 'Data sheet', 'Measured', 'Finding']}>
      {items.map((each) => (
        <tr key={`${each.node} ${each.metric}`} className="border-b border-line">
          <Named name={each[by]} chosen={each[by] === chosen} onChoose={() => onChoose(each[by])} />
          <Cell>
            {figure(each.value)} <span className="text-muted">{each.unit}</span>
          </Cell>
          <Cell>{each.baseline === null ? '–' : `${figure(each.baseline)} of ${each.alike + 1} nodes`}</Cell>
          <Cell>{change(each.change)}</Cell>
          <Cell>{each.expected === null ? '–' : <span title={each.source}>{`${figure(each.expected)}, ${figure(each.least)} at least`}</span>}</Cell>
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
    <Table label="Two runs compared" head={['Measurement', 'Before', 'After', 'Gain']}>
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
