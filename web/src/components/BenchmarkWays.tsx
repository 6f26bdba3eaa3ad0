/** Single ways between nodes, or between the devices of a node: a matrix with what changed between two runs. */

import type { BenchmarkWays as Ways } from '../api/types';
import { change, figure } from '../lib/benchmarks';
import { wide } from '../lib/wide';
import { benchmarks as texts } from '../texts/english/benchmarks';
import { fill } from '../texts/fill';

const LOSS = 0.05;

export function BenchmarkWays({ ways }: { ways: Ways }) {
  const { names, node, after, before, gain, unit } = ways;
  const title = fill(node ? texts.betweenDevices : texts.betweenNodes, { benchmark: ways.benchmark, node });
  const name = (at: number) => (node ? fill(texts.device, { index: names[at] ?? '' }) : (names[at] ?? ''));
  return (
    <section aria-label={title} className="pt-4">
      <h3 className="pb-1 text-sm font-medium break-all">
        {title} <span className="font-normal text-muted">{fill(texts.rowToColumn, { unit })}</span>
      </h3>
      <div {...wide} className="overflow-x-auto">
        <table className="border-collapse text-xs" aria-label={title}>
          <thead>
            <tr>
              <td />
              {names.map((each, column) => (
                <th key={each} scope="col" aria-label={name(column)} title={name(column)} className="num px-2 py-1 font-medium text-muted">
                  {node ? each : column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {after.map((row, at) => (
              <tr key={names[at]}>
                <th scope="row" className="px-2 py-1 text-left font-medium whitespace-nowrap text-muted">
                  {node ? name(at) : `${at} ${names[at]}`}
                </th>
                {row.map((value, to) => (
                  <Way
                    key={names[to]}
                    self={at === to}
                    words={fill(texts.way, { from: name(at), to: name(to), before: figure(before[at]?.[to] ?? null), after: figure(value) })}
                    value={value}
                    part={gain[at]?.[to] ?? null}
                  />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Way({ self, words, value, part }: { self: boolean; words: string; value: number | null; part: number | null }) {
  if (self) return <td className="border border-line px-2 py-1 text-center text-muted">–</td>;
  const worse = part !== null && part <= -LOSS;
  return (
    <td title={words} className={`num border border-line px-2 py-1 text-right whitespace-nowrap ${worse ? 'text-fail' : ''}`}>
      {worse && '◆ '}
      {figure(value)}
      {part !== null && Math.abs(part) >= LOSS && <span className="pl-1">{change(part)}</span>}
    </td>
  );
}
