/** How fast the tasks of a gang make steps beside each other, and the times that it hung. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/hangs';
import { ENDED, type Hang, type JobDetail, type RankScore } from '../api/types';
import { bytes } from '../lib/bytes';
import { duration } from '../lib/time';
import { wide } from '../lib/wide';
import { job as texts } from '../texts/english/job';
import { counted, fill, filled, number } from '../texts/fill';
import { Ago } from './Time';

/** Slower than its peers by more than this is marked. */
const SLOW = 0.9;
/** Rows of the slowest; the others are counted. */
const SHOWN = 8;

export function JobRanks({ job }: { job: JobDetail }) {
  const going = !ENDED.has(job.state);
  const gang = job.state === 'running' && job.roles.some((role) => role.target > 1);
  const { data: ranks } = useQuery({ ...ask.ranks(job.id), enabled: gang });
  const { data: hangs } = useQuery({ ...ask.hangs(job.id, going), enabled: job.startedAt !== null });
  return (
    <>
      {hangs && hangs.items.length > 0 && <HangsCard hangs={hangs.items} address={job.allowed.includes('exec') ? (bundle) => ask.bundleAddress(job.id, bundle) : null} />}
      {gang && ranks && ranks.items.length > 1 && <RanksCard ranks={ranks.items} />}
    </>
  );
}

interface HangsProps {
  hangs: Hang[];
  /** The address of a bundle; null for those who may not read it. */
  address: ((bundle: string) => string) | null;
}

export function HangsCard({ hangs, address }: HangsProps) {
  return (
    <section aria-label={texts.hangs}>
      <h2 className="heading">{texts.hangs}</h2>
      <ul className="space-y-2 pt-2 text-sm">
        {hangs.map((hang) => (
          <li key={hang.at}>
            <p className="break-words">
              {hang.why} <span className="text-muted">{texts.hung[hang.action]}</span>
            </p>
            <p className="text-xs text-muted">
              {filled(texts.afterWithoutProgress, { time: <Ago at={hang.at} />, time2: duration(hang.silentSeconds) })}
              {hang.bundle && address && (
                <>
                  {' · '}
                  <a className="link" href={address(hang.bundle)} download>
                    {fill(texts.stacksLogsFigures, { bytes: bytes(hang.bytes) })}
                  </a>
                </>
              )}
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function RanksCard({ ranks }: { ranks: RankScore[] }) {
  const rest = ranks.length - SHOWN;
  const waits = ranks.some((each) => each.waits !== null);
  return (
    <section aria-label={texts.paceTasks}>
      <h2 className="heading">{texts.paceTasks}</h2>
      <p className="pt-2 text-sm">{sentence(ranks)}</p>
      <div {...wide} className="overflow-x-auto">
        <table className="mt-2 w-full text-xs">
          <thead>
            <tr className="text-left text-muted">
              <th scope="col">{texts.task}</th>
              <th scope="col">{texts.node}</th>
              <th scope="col" className="text-right">{texts.step}</th>
              <th scope="col" className="text-right">{texts.stepsASecond}</th>
              <th scope="col" className="text-right">{texts.besideItsPeers}</th>
              {waits && <th scope="col" className="text-right">{texts.waitsForPeers}</th>}
            </tr>
          </thead>
          <tbody>
            {ranks.slice(0, SHOWN).map((each) => (
              <tr key={each.task}>
                <th scope="row" className="text-left font-normal">{each.task}</th>
                <td>{each.node}</td>
                <td className="text-right">{number(each.step)}</td>
                <td className="text-right">{each.stepsPerSecond === null ? '' : each.stepsPerSecond.toPrecision(3)}</td>
                <td className={`text-right ${slow(each) ? 'font-semibold' : ''}`}>{percent(each.score)}</td>
                {waits && <td className="text-right">{percent(each.waits)}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rest > 0 && <p className="pt-1 text-xs text-muted">{counted(texts.faster, rest)}</p>}
    </section>
  );
}

function sentence(ranks: RankScore[]): string {
  const behind = ranks.filter(slow);
  const [slowest] = behind;
  if (!slowest) return texts.allTasksReport;
  if (behind.length === 1) return fill(texts.worksPacePeers, { task: slowest.task, score: percent(slowest.score) });
  return counted(texts.tasksSlowerThan, behind.length, { ranks: number(ranks.length) });
}

function slow(each: RankScore): boolean {
  return each.score !== null && each.score < SLOW;
}

function percent(score: number | null): string {
  return score === null ? '' : `${Math.round(100 * score)} %`;
}
