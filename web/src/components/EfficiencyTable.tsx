/** Jobs and what they used of what they asked for, each with its sentences and the request that would have done. */

import { Link } from '@tanstack/react-router';
import type { EfficiencySum, JobEfficiency } from '../api/types';
import { usedPart, wouldHaveDone } from '../lib/efficiency';
import { hours } from '../lib/usage';
import { efficiency as texts } from '../texts/english/efficiency';
import { shared } from '../texts/english/shared';
import { fill, textOf } from '../texts/fill';

export function EfficiencyTable({ jobs }: { jobs: readonly JobEfficiency[] }) {
  return (
    <table className="grid-table [&_td]:!align-top" aria-label={texts.jobs}>
      <thead>
        <tr>
          <th className="w-[45%] max-sm:w-auto">{texts.job}</th>
          <th className="num">{texts.deviceHours}</th>
          <th className="num">{texts.used}</th>
          <th className="num max-md:hidden">{texts.lostHours}</th>
          <th className="max-md:hidden">{texts.wouldHaveDone}</th>
        </tr>
      </thead>
      <tbody>
        {jobs.map((job) => (
          <Row key={job.job} job={job} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ job }: { job: JobEfficiency }) {
  const smaller = wouldHaveDone(job);
  return (
    <tr data-efficiency={job.job}>
      <td className="min-w-0">
        <Link to="/jobs/$ref" params={{ ref: job.job }} className="link [overflow-wrap:anywhere]">
          {job.name}
        </Link>
        <p className="text-xs text-muted [overflow-wrap:anywhere]">
          {job.user} · {job.queue} · {textOf(shared.states, job.state)}
        </p>
        {smaller.length > 0 && <p className="text-xs md:hidden">{fill(texts.wouldHaveDoneNarrow, { requests: smaller.join('; ') })}</p>}
        <details className="pt-0.5 text-xs">
          <summary className="text-muted" aria-label={fill(texts.inWordsOf, { job: job.name })}>
            {texts.inWords}
          </summary>
          <ul className="max-w-[75ch] space-y-0.5 py-1">
            {job.words.map((sentence) => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
        </details>
      </td>
      <td className="num">{hours(job.deviceSeconds)}</td>
      <td className="num font-medium">{usedPart(job.usedDeviceSeconds, job.measuredDeviceSeconds) || <NotMeasured />}</td>
      <td className="num text-muted max-md:hidden">{hours(job.lostDeviceSeconds)}</td>
      <td className="max-md:hidden">
        {smaller.map((each) => (
          <div key={each}>{each}</div>
        ))}
      </td>
    </tr>
  );
}

function NotMeasured() {
  return (
    <span className="font-normal text-faint" title={texts.useNotMeasured}>
      –
    </span>
  );
}

export function EfficiencyByUser({ users, onUser }: { users: readonly EfficiencySum[]; onUser: (user: string) => void }) {
  return (
    <table className="grid-table" aria-label={texts.users}>
      <thead>
        <tr>
          <th className="w-[45%] max-sm:w-auto">{texts.user}</th>
          <th className="num">{texts.deviceHours}</th>
          <th className="num">{texts.used}</th>
          <th className="num max-md:hidden">{texts.lostHours}</th>
        </tr>
      </thead>
      <tbody>
        {users.map((each) => (
          <tr key={each.key} data-user={each.key}>
            <td className="[overflow-wrap:anywhere]">
              <button type="button" className="link text-left" onClick={() => onUser(each.key)}>
                {each.key}
              </button>
            </td>
            <td className="num">{hours(each.deviceSeconds)}</td>
            <td className="num font-medium">{usedPart(each.usedDeviceSeconds, each.measuredDeviceSeconds) || <NotMeasured />}</td>
            <td className="num text-muted max-md:hidden">{hours(each.lostDeviceSeconds)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
