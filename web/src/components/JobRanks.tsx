/** How fast the tasks of a gang make steps beside each other, and the times that it hung. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/hangs';
import { ENDED, type Hang, type JobDetail, type RankScore } from '../api/types';
import { bytes } from '../lib/bytes';
import { duration } from '../lib/time';
import { wide } from '../lib/wide';
import { Ago } from './Time';

/** Slower than its peers by more than this is marked. */
const SLOW = 0.9;
/** Rows of the slowest; the others are counted. */
const SHOWN = 8;
const DONE: Record<Hang['action'], string> = { warn: 'Its owner was told.', restart: 'It was restarted.', suspend: 'It was suspended.' };

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
    <section aria-label="Hangs">
      <h2 className="heading">Hangs</h2>
      <ul className="space-y-2 pt-2 text-sm">
        {hangs.map((hang) => (
          <li key={hang.at}>
            <p className="break-words">
              {hang.why} <span className="text-muted">{DONE[hang.action]}</span>
            </p>
            <p className="text-xs text-muted">
              <Ago at={hang.at} />, after {duration(hang.silentSeconds)} without progress
              {hang.bundle && address && (
                <>
                  {' · '}
                  <a className="link" href={address(hang.bundle)} download>
                    stacks, logs and figures ({bytes(hang.bytes)})
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
  return (
    <section aria-label="Pace of its tasks">
      <h2 className="heading">Pace of its tasks</h2>
      <p className="pt-2 text-sm">{sentence(ranks)}</p>
      <div {...wide} className="overflow-x-auto">
        <table className="mt-2 w-full text-xs">
          <thead>
            <tr className="text-left text-muted">
              <th scope="col">Task</th>
              <th scope="col">Node</th>
              <th scope="col" className="text-right">Step</th>
              <th scope="col" className="text-right">Steps a second</th>
              <th scope="col" className="text-right">Beside its peers</th>
            </tr>
          </thead>
          <tbody>
            {ranks.slice(0, SHOWN).map((each) => (
              <tr key={each.task}>
                <th scope="row" className="text-left font-normal">{each.task}</th>
                <td>{each.node}</td>
                <td className="text-right">{each.step.toLocaleString('en')}</td>
                <td className="text-right">{each.stepsPerSecond === null ? '' : each.stepsPerSecond.toPrecision(3)}</td>
                <td className={`text-right ${slow(each) ? 'font-semibold' : ''}`}>{percent(each.score)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rest > 0 && <p className="pt-1 text-xs text-muted">{`and ${rest.toLocaleString('en')} that are faster`}</p>}
    </section>
  );
}

function sentence(ranks: RankScore[]): string {
  const behind = ranks.filter(slow);
  const [slowest] = behind;
  if (!slowest) return 'All of its tasks that report steps keep pace.';
  if (behind.length === 1) return `${slowest.task} works at ${percent(slowest.score)} of the pace of its peers.`;
  return `${behind.length.toLocaleString('en')} of ${ranks.length.toLocaleString('en')} tasks are slower than their peers.`;
}

function slow(each: RankScore): boolean {
  return each.score !== null && each.score < SLOW;
}

function percent(score: number | null): string {
  return score === null ? '' : `${Math.round(100 * score)} %`;
}
