/** What a waiting job may hope for: when it is likely to start and what that rests on, and what would let it start now. */

import { Link } from '@tanstack/react-router';
import type { Change, Estimate, Forecast } from '../api/types';
import { absolute, duration } from '../lib/time';
import { counts } from '../texts/english/counts';
import { line } from '../texts/english/line';
import { counted, fill, filled, textOf } from '../texts/fill';
import { job as texts } from '../texts/english/job';
import { Ago, useNow } from './Time';

export function Outlook({ estimate, changes }: { estimate: Estimate | null; changes: readonly Change[] }) {
  return (
    <>
      {estimate && <Start estimate={estimate} />}
      {estimate?.forecast && <Source forecast={estimate.forecast} />}
      {changes.length > 0 && <Changes changes={changes} />}
    </>
  );
}

function Start({ estimate }: { estimate: Estimate }) {
  const now = useNow();
  const how = Object.hasOwn(texts.starts, estimate.basis) && textOf(texts.starts, estimate.basis);
  return (
    <div data-estimate={estimate.basis} className="pt-2">
      {how && estimate.at && (
        <p className="font-semibold">
          {filled(how, {
            time: (
              <time dateTime={estimate.at} title={absolute(estimate.at)} className="whitespace-nowrap">
                {duration(Math.max(0, Math.ceil((Date.parse(estimate.at) - now) / 1000)))}
              </time>
            ),
          })}
          <Range estimate={estimate} now={now} />
        </p>
      )}
      <p>{estimate.message}</p>
      {estimate.after.length > 0 && (
        <p className="text-muted">
          {texts.itWaitsFor}{' '}
          {estimate.after.map((job, at) => (
            <span key={job.id}>
              {at > 0 && ', '}
              <Link to="/jobs/$ref" params={{ ref: job.id }} className="link">
                {job.name}
              </Link>
            </span>
          ))}
        </p>
      )}
    </div>
  );
}

/** From P10 to P90, where the courses of the forecast differ. */
function Range({ estimate, now }: { estimate: Estimate; now: number }) {
  const { p10, p90 } = estimate;
  if (!p10 || p10 === p90) return null;
  const span = (at: string) => duration(Math.max(0, Math.ceil((Date.parse(at) - now) / 1000)));
  return (
    <span className="font-normal text-muted">
      {' '}
      {fill(p90 ? texts.mostCourses : texts.mostCoursesLater, { p10: span(p10), p90: p90 ? span(p90) : '' })}
    </span>
  );
}

/** Which forecast an estimate comes from: its time, revision and courses. */
export function Source({ forecast }: { forecast: Forecast }) {
  return (
    <p data-forecast={forecast.revision} className="text-xs text-muted">
      {filled(line.forecast, { time: <Ago at={forecast.at} />, revision: forecast.revision, courses: counted(counts.courses, forecast.seeds) })}
    </p>
  );
}

function Changes({ changes }: { changes: readonly Change[] }) {
  return (
    <div className="pt-2">
      <h3 className="font-semibold">{texts.whatWouldStart}</h3>
      <ul aria-label={texts.whatWouldStart} className="flex flex-col gap-1 pt-1">
        {changes.map((change) => (
          <li key={change.path} className="flex flex-col sm:flex-row sm:gap-3">
            <code className="shrink-0 break-all text-xs leading-5 sm:w-64">
              {change.path}: {written(change.from)} → {written(change.to)}
            </code>
            <span>{change.message}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** A value as one writes it; what is left out is a dash. */
function written(value: string | number): string {
  return value === '' ? '–' : String(value);
}
