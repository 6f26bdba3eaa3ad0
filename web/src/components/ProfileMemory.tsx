/** The memory of each rank: how much is in use, how it grew, and what holds it. */

import type { ProfileReport, RankMemory } from '../api/types';
import { bytes } from '../lib/bytes';
import { grown } from '../lib/profiles';
import { wide } from '../lib/wide';
import { profiles as texts } from '../texts/english/profiles';
import { fill } from '../texts/fill';
import { ProfileAdvice } from './ProfileAdvice';
import { ProfileCurves } from './ProfileCurves';

/** Ranks whose holders are listed. */
const MOST = 16;

export function ProfileMemory({ report }: { report: ProfileReport }) {
  return (
    <>
      {report.advice.length > 0 && <ProfileAdvice report={report} />}
      <Ranks ranks={report.memory} />
      <ProfileCurves ranks={report.curves} />
      {report.memory.slice(0, MOST).map((rank) => (
        <Holders key={rank.rank} rank={rank} />
      ))}
    </>
  );
}

function Ranks({ ranks }: { ranks: readonly RankMemory[] }) {
  return (
    <div {...wide} className="overflow-x-auto">
      <table className="grid-table" aria-label={texts.memoryEachRank}>
        <thead>
          <tr>
            <th scope="col">{texts.rank}</th>
            <th scope="col" className="num">{texts.inUse}</th>
            <th scope="col" className="num">{texts.atMost}</th>
            <th scope="col" className="num">{texts.grew}</th>
            <th scope="col" className="num">{texts.stayed}</th>
          </tr>
        </thead>
        <tbody>
          {ranks.map((rank) => (
            <tr key={rank.rank}>
              <th scope="row" className="!border-line !text-sm !font-normal !text-text">
                {rank.rank}
              </th>
              <td className="num whitespace-nowrap">{bytes(rank.used)}</td>
              <td className="num whitespace-nowrap">{bytes(rank.peak)}</td>
              <td className="num whitespace-nowrap">{bytes(rank.grown)}</td>
              <td className="num whitespace-nowrap">{grown(rank.kept)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Holders({ rank }: { rank: RankMemory }) {
  return (
    <div {...wide} className="overflow-x-auto">
      <table className="grid-table" aria-label={fill(texts.whatHoldsMemory, { rank: rank.rank })}>
        <thead>
          <tr>
            <th scope="col" className="num w-28">{texts.inUse}</th>
            <th scope="col" className="num w-28">{texts.change}</th>
            <th scope="col">{fill(texts.heldByIn, { rank: rank.rank })}</th>
          </tr>
        </thead>
        <tbody>
          {rank.holders.map((each) => (
            <tr key={each.kind}>
              <td className="num whitespace-nowrap">{bytes(each.after)}</td>
              <td className="num whitespace-nowrap">{grown(each.after - each.before)}</td>
              <td>{each.kind}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
