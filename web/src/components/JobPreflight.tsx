/** What the tasks of a job checked before their commands began: their network and their machines, with what slows them. */

import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import * as ask from '../api/overview';
import { ENDED, type JobDetail, type NetworkReport, type NetworkWay, type PlatformReport, type PreflightReport } from '../api/types';
import { bytes } from '../lib/bytes';
import { wide } from '../lib/wide';
import { counts } from '../texts/english/counts';
import { preflight as texts } from '../texts/english/preflight';
import { counted, fill, number } from '../texts/fill';

const SHOWN = 8;

/** Most jobs check nothing, and nothing is asked of the server for them. */
export function JobPreflight({ job }: { job: JobDetail }) {
  const checks = job.document.spec?.preflight?.checks ?? [];
  const { data } = useQuery({ ...ask.preflight(job.id, !ENDED.has(job.state)), enabled: checks.length > 0 && job.startedAt !== null });
  return data ? <PreflightCard found={data} /> : null;
}

export function PreflightCard({ found }: { found: PreflightReport }) {
  return (
    <>
      {found.checks.includes('network') && (
        <section aria-label={texts.networkBeforeStart}>
          <h2 className="heading">{texts.networkBeforeStart}</h2>
          {found.network ? <Network report={found.network} /> : <p className="pt-2 text-sm">{texts.taskHasTold}</p>}
        </section>
      )}
      {found.checks.includes('platform') && (
        <section aria-label={texts.machinesBeforeStart}>
          <h2 className="heading">{texts.machinesBeforeStart}</h2>
          {found.platform ? <Platform report={found.platform} /> : <p className="pt-2 text-sm">{texts.taskHasToldMachine}</p>}
        </section>
      )}
    </>
  );
}

function Platform({ report }: { report: PlatformReport }) {
  const found = report.machines.flatMap((each) => each.findings.map((finding) => `${each.node}: ${finding}`));
  return (
    <>
      {found.length + report.differences.length === 0 && <p className="pt-2 text-sm">{texts.nothingSlowsTasks}</p>}
      <Findings findings={[...report.differences, ...found]} />
      <Figures>
        <caption className="sr-only">{texts.machines}</caption>
        <thead>
          <tr>
            <th scope="col">{texts.node}</th>
            <th scope="col">{texts.kernel}</th>
            <th scope="col">{texts.processors}</th>
            <th scope="col" className="num">{texts.memory}</th>
            <th scope="col" className="num">{texts.pageCache}</th>
            <th scope="col" className="num">{texts.numaNodes}</th>
          </tr>
        </thead>
        <tbody>
          {report.machines.map(({ node, facts }) => (
            <tr key={node}>
              <th scope="row" className="!text-sm !font-normal !text-text">{node}</th>
              <td>{facts.kernel}</td>
              <td>{fill(texts.processorsOf, { processors: facts.processors, processor: facts.processor || texts.unknown })}</td>
              <td className="num">{bytes(facts.memory.total)}</td>
              <td className="num">{bytes(facts.memory.pageCache)}</td>
              <td className="num">{facts.numa.length}</td>
            </tr>
          ))}
        </tbody>
      </Figures>
    </>
  );
}

function Network({ report }: { report: NetworkReport }) {
  const slowest = [...report.ways].sort((one, other) => one.bytesPerSecond - other.bytesPerSecond).slice(0, SHOWN);
  return (
    <>
      <p className="pt-2 text-sm">{sentence(report)}</p>
      <Findings findings={report.findings} />
      {report.levels.length > 0 && (
        <Figures>
          <caption className="sr-only">{texts.usualFiguresCloseness}</caption>
          <thead>
            <tr>
              <th scope="col">{texts.within}</th>
              <th scope="col" className="num">{texts.ways}</th>
              <th scope="col" className="num">{texts.medianRate}</th>
              <th scope="col" className="num">{texts.medianLatency}</th>
            </tr>
          </thead>
          <tbody>
            {report.levels.map((level) => (
              <tr key={level.level}>
                <th scope="row" className="!text-sm !font-normal !text-text">{level.level}</th>
                <td className="num">{number(level.ways)}</td>
                <td className="num">{rate(level.bytesPerSecond)}</td>
                <td className="num">{latency(level.latencySeconds)}</td>
              </tr>
            ))}
          </tbody>
        </Figures>
      )}
      {slowest.length > 0 && <Ways ways={slowest} of={report.ways.length} />}
    </>
  );
}

function Figures({ children }: { children: ReactNode }) {
  return (
    <div {...wide} className="overflow-x-auto">
      <table className="grid-table mt-2">
        {children}
      </table>
    </div>
  );
}

function Findings({ findings }: { findings: string[] }) {
  if (findings.length === 0) return null;
  return (
    <ul className="mt-2 space-y-1 border-l-[3px] border-line-strong px-4 py-1 text-sm">
      {findings.map((finding) => (
        <li key={finding}>{finding}</li>
      ))}
    </ul>
  );
}

function Ways({ ways, of }: { ways: NetworkWay[]; of: number }) {
  return (
    <Figures>
      <caption className="px-2 pt-1 text-left text-xs text-muted">{of > ways.length ? fill(texts.theSlowestOf, { ways: ways.length, ways2: counted(counts.ways, of) }) : texts.allWaysSlowest}</caption>
      <thead>
        <tr>
          <th scope="col">{texts.from}</th>
          <th scope="col">{texts.to}</th>
          <th scope="col">{texts.within}</th>
          <th scope="col" className="num">{texts.rate}</th>
          <th scope="col" className="num">{texts.latency}</th>
        </tr>
      </thead>
      <tbody>
        {ways.map((way) => (
          <tr key={`${way.source} ${way.target}`}>
            <th scope="row" className="!text-sm !font-normal !text-text">{way.source}</th>
            <td>{way.target}</td>
            <td>{way.slow ? fill(texts.slow, { level: way.level }) : way.level}</td>
            <td className="num">{rate(way.bytesPerSecond)}</td>
            <td className="num">{latency(way.latencySeconds)}</td>
          </tr>
        ))}
      </tbody>
    </Figures>
  );
}

function sentence(report: NetworkReport): string {
  const measured = { tasks: counted(counts.tasks, report.tasks), ways: counted(counts.ways, report.ways.length), seconds: report.seconds.toFixed(1) };
  if (report.ring.length === 0) return fill(texts.measured, measured);
  const least = report.ring.reduce((one, other) => (other.bytesPerSecond < one.bytesPerSecond ? other : one));
  return fill(texts.whileAllSend, { ...measured, source: least.source, rate: rate(least.bytesPerSecond) });
}

function rate(value: number): string {
  return value >= 1e9 ? `${digits(value / 1e9)} GB/s` : `${digits(value / 1e6)} MB/s`;
}

function latency(value: number | null): string {
  if (value === null) return '';
  return value >= 1e-3 ? `${digits(value * 1e3)} ms` : `${digits(value * 1e6)} µs`;
}

function digits(value: number): string {
  return number(Number(value.toPrecision(3)));
}
