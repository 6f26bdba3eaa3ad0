/** The report of a comparison: in words, by queue as a picture and a table, hour by hour, and the decisions that differ. */

import { Link } from '@tanstack/react-router';
import type { Figures, ShadowReport } from '../api/types';
import { COLUMNS, hourOf, inWords, movedJobs } from '../lib/shadow';
import { absolute } from '../lib/time';
import { wide } from '../lib/wide';
import { shadow as texts } from '../texts/english/shadow';
import { counted as plural, fill, number, textOf } from '../texts/fill';
import { Both } from './Both';
import { ShadowPicture } from './ShadowPicture';

export function ShadowAnswer({ report }: { report: ShadowReport }) {
  const queues = report.total.queues;
  return (
    <div className="min-w-0 space-y-5" role="region" aria-label={texts.report}>
      <div className="max-w-[70ch] space-y-1 text-sm">
        {inWords(report).map((each) => (
          <p key={each}>{each}</p>
        ))}
        {report.gains.length > 0 && <p className="break-words text-muted">{fill(texts.gainMost, { jobs: movedJobs(report.gains.slice(0, 5)) })}</p>}
        {report.losses.length > 0 && <p className="break-words text-muted">{fill(texts.loseMost, { jobs: movedJobs(report.losses.slice(0, 5)) })}</p>}
        {report.problem && (
          <p role="status" className="text-fail">
            {report.problem}
          </p>
        )}
        {report.notes.map((each) => (
          <p key={each} className="text-muted">
            {each}
          </p>
        ))}
      </div>
      <ShadowPicture queues={queues} />
      <Rows label={texts.queues} head={texts.queue} rows={queues.map((each) => ({ ...each, name: each.queue }))} />
      <Hours report={report} />
      <Differences report={report} />
      <ul className="list-disc space-y-0.5 pl-5 text-xs text-muted">
        {report.assumptions.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
    </div>
  );
}

interface Row {
  name: string;
  title?: string;
  inForce: Figures;
  candidate: Figures;
  /** How many decisions were made by one of both alone. */
  otherwise?: string;
}

function Rows({ label, head, rows }: { label: string; head: string; rows: readonly Row[] }) {
  const counted = rows.some((row) => row.otherwise !== undefined);
  if (rows.length === 0) return null;
  return (
    <div {...wide} className="overflow-x-auto">
      <table className="grid-table" aria-label={label}>
        <thead>
          <tr>
            <th>{head}</th>
            {counted && <th className="num">{texts.otherwiseColumn}</th>}
            {COLUMNS.map(([column, , narrow]) => (
              <th key={column} className={`num ${narrow}`}>
                {texts.figures[column]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name}>
              <td className="font-medium whitespace-nowrap" title={row.title}>
                {row.name}
              </td>
              {counted && <td className="num">{row.otherwise}</td>}
              {COLUMNS.map(([column, say, narrow]) => (
                <td key={column} className={`num ${narrow}`}>
                  <Both before={say(row.inForce)} after={say(row.candidate)} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Hours({ report }: { report: ShadowReport }) {
  const rows = [...report.hours, ...(report.hours.length > 1 ? [report.total] : [])].map((hour, at) => ({
    name: at === report.hours.length ? texts.allHours : hourOf(hour),
    title: absolute(hour.at),
    inForce: hour.inForce,
    candidate: hour.candidate,
    otherwise: number(hour.decisions.onlyInForce + hour.decisions.onlyCandidate),
  }));
  return (
    <details open={rows.length <= 30}>
      <summary className="cursor-pointer py-1 text-sm">{texts.hourByHour}</summary>
      <Rows label={texts.hoursTable} head={texts.hour} rows={rows} />
    </details>
  );
}

function Differences({ report }: { report: ShadowReport }) {
  if (report.differences.length === 0) return <p className="text-sm text-muted">{texts.noDecisionDiffers}</p>;
  return (
    <div {...wide} className="overflow-x-auto">
      <table className="grid-table" aria-label={texts.decisionsDiffer}>
        <thead>
          <tr>
            <th>{texts.job}</th>
            <th className="max-md:hidden">{texts.user}</th>
            <th className="max-md:hidden">{texts.queue}</th>
            <th>{texts.decision}</th>
            <th className="num">{texts.inForce}</th>
            <th className="num">{texts.candidateColumn}</th>
            <th className="max-lg:hidden">{texts.why}</th>
          </tr>
        </thead>
        <tbody>
          {report.differences.map((each, at) => (
            <tr key={at}>
              <td className="max-w-0 min-w-20 truncate">
                <Link to="/jobs/$ref" params={{ ref: each.job }} className="font-medium hover:underline">
                  {each.name}
                </Link>
              </td>
              <td className="max-md:hidden">{each.user}</td>
              <td className="max-md:hidden">{each.queue}</td>
              <td>{textOf(texts.decisions, each.kind)}</td>
              <Made at={each.inForce} />
              <Made at={each.candidate} />
              <td className="w-2/5 text-muted max-lg:hidden">{each.why}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {report.differencesLeftOut > 0 && <p className="pt-1.5 pl-2.5 text-xs text-muted">{plural(texts.moreDecisions, report.differencesLeftOut, { command: 'corral policy shadow --differences' })}</p>}
    </div>
  );
}

function Made({ at }: { at: string | null }) {
  return (
    <td className="num whitespace-nowrap" title={at === null ? undefined : absolute(at)}>
      {at === null ? (
        '–'
      ) : (
        <>
          <span className="max-sm:hidden">{at.slice(5, 10)} </span>
          {at.slice(11, 19)}
        </>
      )}
    </td>
  );
}
