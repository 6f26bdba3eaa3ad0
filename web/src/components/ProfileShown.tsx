/** What a profile shows: flame graph and functions, stacks, memory, the machine, or times with a timeline and advice; and its files. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/profiles';
import type { ProfilePlace, ProfileReport, ProfileView } from '../api/types';
import { isTrace, percent, summary } from '../lib/profiles';
import { bytes } from '../lib/bytes';
import { wide } from '../lib/wide';
import { profiles as texts } from '../texts/english/profiles';
import { counted, fill } from '../texts/fill';
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
    <section aria-label={texts.report} className="space-y-5">
      <h2 className="heading">
        {texts.kinds[report.what]}
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
      <table className="grid-table" aria-label={texts.functions}>
        <thead>
          <tr>
            <th scope="col" className="num w-24">{texts.own}</th>
            <th scope="col" className="num w-24">{texts.total}</th>
            <th scope="col">{texts.function}</th>
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
    <ol aria-label={texts.stacks} className="space-y-4">
      {places.map((place, at) => (
        <li key={at}>
          <h3 className="text-sm font-medium">
            {place.ranks.length > MOST_RANKS
              ? counted(texts.ranksMore, place.ranks.length - MOST_RANKS, { ranks: place.ranks.slice(0, MOST_RANKS).join(', ') })
              : place.ranks.join(', ')}
            <span className="font-normal text-muted">
              {' '}
              {fill(place.active ? texts.threadRuns : texts.threadWaits, { thread: place.thread })}
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
        {isTrace(profile.what) ? texts.filesAndTraces : texts.filesToDownload}
      </summary>
      <ul aria-label={texts.files} className="pt-1.5 text-sm">
        {profile.files.map((file) => (
          <li key={file.name}>
            <a className="link break-all" href={ask.fileAddress(profile.id, file.name)} download>
              {file.name}
            </a>
            <span className="text-muted"> {file.size < 2 ** 20 ? fill(texts.kib, { size: Math.ceil(file.size / 1024) }) : bytes(file.size)}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}
