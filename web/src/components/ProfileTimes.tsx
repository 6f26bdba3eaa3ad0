/** What the ranks did during a trace: advice, a timeline of each rank, its shares, and what took most time. */

import type { ProfileReport, RankTimes } from '../api/types';
import { PARTS, band, percent, spoken, together } from '../lib/profiles';
import { duration } from '../lib/time';
import { wide } from '../lib/wide';
import { profiles as texts } from '../texts/english/profiles';
import { counted, number } from '../texts/fill';
import { ProfileAdvice } from './ProfileAdvice';

const HEIGHT = 26;
/** Ranks that are drawn. */
const MOST = 64;
const TOPS = 8;

export function ProfileTimes({ report }: { report: ProfileReport }) {
  return (
    <>
      <ProfileAdvice report={report} />
      <Timelines ranks={report.reports} />
      <CriticalPath path={report.path} />
      <Shares ranks={report.reports} />
      {(['kernels', 'collectives', 'operators'] as const).map((name) => (
        <Tops key={name} report={report} name={name} />
      ))}
    </>
  );
}

function Timelines({ ranks }: { ranks: readonly RankTimes[] }) {
  return (
    <figure aria-label={texts.timeline}>
      <figcaption className="flex flex-wrap items-center gap-x-4 gap-y-1 pb-1.5 text-2xs text-muted">
        <span className="label">{texts.timeline}</span>
        {[...PARTS, ['idle', 'var(--sunken)'] as const].map(([part, colour]) => (
          <span key={part} className="flex items-center gap-1.5">
            <svg width={14} height={10} aria-hidden>
              <rect x={0.5} y={0.5} width={13} height={9} fill={colour} stroke="var(--line-strong)" />
            </svg>
            {texts.parts[part]}
          </span>
        ))}
      </figcaption>
      <div className="space-y-1.5">
        {ranks.slice(0, MOST).map((rank) => (
          <div key={rank.rank} className="grid grid-cols-[9rem_minmax(0,1fr)_3rem] items-center gap-2 text-xs max-sm:grid-cols-1">
            <span className="truncate text-muted" title={rank.rank}>
              {rank.rank}
            </span>
            <svg role="img" aria-label={spoken(rank)} viewBox="0 0 1 1" preserveAspectRatio="none" width="100%" height={HEIGHT} className="block border border-line bg-sunken">
              <title>{spoken(rank)}</title>
              {PARTS.map(([part, colour], at) => (
                <path key={part} d={band(rank.timeline, at)} fill={colour} />
              ))}
            </svg>
            <span className="text-muted">{duration(rank.seconds)}</span>
          </div>
        ))}
      </div>
      {ranks.length > MOST && <p className="pt-1 text-2xs text-muted">{counted(texts.moreRanksTable, ranks.length - MOST)}</p>}
    </figure>
  );
}

/** Parts of the path that are listed. */
const STRETCHES = 8;

function CriticalPath({ path }: { path: ProfileReport['path'] }) {
  if (path.length === 0) return null;
  return (
    <div {...wide} className="overflow-x-auto">
      <table className="grid-table" aria-label={texts.criticalPathOver}>
        <thead>
          <tr>
            <th scope="col" className="num w-28">{texts.criticalPath}</th>
            <th scope="col">{texts.rank}</th>
            <th scope="col">{texts.what}</th>
            <th scope="col">{texts.mostly}</th>
          </tr>
        </thead>
        <tbody>
          {path.slice(0, STRETCHES).map((each) => (
            <tr key={`${each.rank} ${each.part}`}>
              <td className="num">{percent(each.share)}</td>
              <td>{each.rank}</td>
              <td className="whitespace-nowrap">{texts.stretches[each.part]}</td>
              <td className="font-mono text-xs [overflow-wrap:anywhere]">{each.names.join(', ')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Shares({ ranks }: { ranks: readonly RankTimes[] }) {
  const share = (rank: RankTimes, seconds: number) => (rank.seconds ? percent(seconds / rank.seconds) : '');
  return (
    <div {...wide} className="overflow-x-auto">
      <table className="grid-table" aria-label={texts.timeEachRank}>
        <thead>
          <tr>
            <th scope="col">{texts.rank}</th>
            <th scope="col" className="num">{texts.seconds}</th>
            {PARTS.map(([part]) => (
              <th key={part} scope="col" className="num first-letter:uppercase">
                {texts.parts[part]}
              </th>
            ))}
            <th scope="col" className="num">{texts.idle}</th>
            <th scope="col" className="num">{texts.steps}</th>
          </tr>
        </thead>
        <tbody>
          {ranks.map((rank) => (
            <tr key={rank.rank}>
              <th scope="row" className="!border-line !text-sm !font-normal !text-text">
                {rank.rank}
              </th>
              <td className="num">{rank.seconds.toFixed(2)}</td>
              {PARTS.map(([part]) => (
                <td key={part} className="num">
                  {share(rank, rank[part])}
                </td>
              ))}
              <td className="num">{share(rank, rank.idle)}</td>
              <td className="num">{rank.steps}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Tops({ report, name }: { report: ProfileReport; name: 'kernels' | 'collectives' | 'operators' }) {
  const found = together(report.reports, name).slice(0, TOPS);
  if (found.length === 0) return null;
  return (
    <div {...wide} className="overflow-x-auto">
      <table className="grid-table" aria-label={texts.topsOf[name]}>
        <thead>
          <tr>
            <th scope="col" className="num w-24">{texts.seconds}</th>
            <th scope="col" className="num w-24">{texts.calls}</th>
            <th scope="col">{texts.tops[name]}</th>
          </tr>
        </thead>
        <tbody>
          {found.map((each) => (
            <tr key={each.name}>
              <td className="num">{each.seconds.toFixed(3)}</td>
              <td className="num">{number(each.calls)}</td>
              <td className="font-mono text-xs break-all">{each.name}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
