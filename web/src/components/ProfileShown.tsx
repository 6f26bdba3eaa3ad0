/** What a profile shows: flame graph and functions, stacks, memory, the machine, or times with a timeline and advice; and its files. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/profiles';
import type { ProfilePlace, ProfileReport, ProfileView } from '../api/types';
import { isTrace, KINDS, percent, summary } from '../lib/profiles';
import { bytes } from '../lib/bytes';
import { wide } from '../lib/wide';
import { FlameGraph } from './FlameGraph';
import { Fault, Skeleton } from './Notices';
import { ProfileAdvice } from './ProfileAdvice';
import { ProfileCurves } from './ProfileCurves';
import { ProfileMemory } from './ProfileMemory';
import { ProfileTimes } from './ProfileTimes';

export function ProfileShown({ profile }: { profile: ProfileView }) {
  const { data: report, error, refetch } = useQuery(ask.report(profile.id));
  if (error) return <Fault error={error} retry={() => void refetch()} />;
  if (!report) return <Skeleton />;
  return (
    <section aria-label="Report" className="space-y-5">
      <h2 className="heading">
        {KINDS[report.what]}
        <span className="text-xs font-normal text-muted">{summary(report)}</span>
      </h2>
      {report.what === 'python' && (
        <>
          <FlameGraph report={report} />
          <Functions report={report} />
        </>
      )}
      {report.what === 'memory' && (
        <>
          <ProfileMemory report={report} />
          {report.frames.length > 0 && <FlameGraph report={report} />}
          {report.frames.length > 0 && <Functions report={report} />}
        </>
      )}
      {report.what === 'system' && (
        <>
          <ProfileAdvice report={report} />
          <ProfileCurves ranks={report.curves} />
        </>
      )}
      {report.what === 'stacks' && <Places places={report.places} />}
      {isTrace(report.what) && <ProfileTimes report={report} />}
      <Files profile={profile} />
    </section>
  );
}

const MOST_FUNCTIONS = 30;

function Functions({ report }: { report: ProfileReport }) {
  return (
    <div {...wide} className="overflow-x-auto">
      <table className="grid-table" aria-label="Functions">
        <thead>
          <tr>
            <th scope="col" className="num w-24">Own</th>
            <th scope="col" className="num w-24">Total</th>
            <th scope="col">Function</th>
          </tr>
        </thead>
        <tbody>
          {report.functions.slice(0, MOST_FUNCTIONS).map((each) => (
            <tr key={each.name}>
              <td className="num">{percent(each.own)}</td>
              <td className="num">{percent(each.total)}</td>
              <td className="font-mono text-xs break-all">{each.name}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const MOST_RANKS = 8;

function Places({ places }: { places: readonly ProfilePlace[] }) {
  return (
    <ol aria-label="Stacks" className="space-y-4">
      {places.map((place, at) => (
        <li key={at}>
          <h3 className="text-sm font-medium">
            {place.ranks.slice(0, MOST_RANKS).join(', ')}
            {place.ranks.length > MOST_RANKS && ` and ${place.ranks.length - MOST_RANKS} more`}
            <span className="font-normal text-muted">
              {' '}
              · thread {place.thread}, {place.active ? 'running' : 'waiting'}
            </span>
          </h3>
          <ol className="pt-1 font-mono text-xs">
            {place.frames.map((frame, depth) => (
              <li key={depth} className="break-all">
                {frame}
              </li>
            ))}
          </ol>
        </li>
      ))}
    </ol>
  );
}

function Files({ profile }: { profile: ProfileView }) {
  return (
    <details>
      <summary className="cursor-pointer text-xs text-muted">
        Files to download{isTrace(profile.what) && ', Chrome traces for Perfetto (ui.perfetto.dev)'}
      </summary>
      <ul aria-label="Files" className="pt-1.5 text-sm">
        {profile.files.map((file) => (
          <li key={file.name}>
            <a className="link break-all" href={ask.fileAddress(profile.id, file.name)} download>
              {file.name}
            </a>
            <span className="text-muted"> {file.size < 2 ** 20 ? `${Math.ceil(file.size / 1024)} KiB` : bytes(file.size)}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}
