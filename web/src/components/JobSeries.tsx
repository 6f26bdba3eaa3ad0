/** What a job reported, and what was measured of its tasks, over time: one small picture for each figure. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/overview';
import { ENDED, type JobDetail, type SeriesView } from '../api/types';
import { inWords, named, picture, short, type Named } from '../lib/series';
import { absolute, between, duration } from '../lib/time';
import { job as texts } from '../texts/english/job';
import { counted, fill } from '../texts/fill';

const WIDTH = 300;
const HEIGHT = 56;
const MOST = 12;

export function JobSeries({ job }: { job: JobDetail }) {
  const { data } = useQuery(ask.series(job.id, job.createdAt, job.endedAt, !ENDED.has(job.state)));
  if (!data?.items.length) return null;
  const { reported, measured } = named(data);
  return (
    <section aria-label={texts.figuresOverTime}>
      <h2 className="heading">
        {texts.figuresOverTime}
        <span className="text-xs font-normal text-muted">
          <span title={`${absolute(data.begin)} – ${absolute(data.end)}`}>{fill(texts.overRow, { time: duration(between(data.begin, data.end)) })}</span>
        </span>
      </h2>
      <Figures shown={reported} />
      {measured.length > 0 && (
        <details className="pt-3">
          <summary className="cursor-pointer text-xs text-muted">{texts.whatTasksTake}</summary>
          <Figures shown={measured} />
        </details>
      )}
    </section>
  );
}

function Figures({ shown }: { shown: Named[] }) {
  return (
    <>
      <ul className="grid gap-x-6 gap-y-4 pt-2 sm:grid-cols-2">
        {shown.slice(0, MOST).map(([name, each]) => (
          <li key={name} className="min-w-0">
            <Figure name={name} series={each} />
          </li>
        ))}
      </ul>
      {shown.length > MOST && <p className="pt-2 text-2xs text-muted">{counted(texts.moreShown, shown.length - MOST)}</p>}
    </>
  );
}

function Figure({ name, series }: { name: string; series: SeriesView }) {
  const shown = picture(series, WIDTH, HEIGHT);
  if (!shown) return null;
  return (
    <figure>
      <figcaption className="flex justify-between text-xs">
        <span className="truncate">{name}</span>
        <span className="font-medium">{short(shown.last)}</span>
      </figcaption>
      <svg
        role="img"
        aria-label={inWords(name, shown)}
        viewBox={`0 -2 ${WIDTH} ${HEIGHT + 4}`}
        preserveAspectRatio="none"
        width="100%"
        height={HEIGHT}
        className="block border-b border-line-strong"
      >
        <title>{inWords(name, shown)}</title>
        {shown.band && <path d={shown.band} fill="var(--accent-ground)" />}
        {shown.dots && <path d={shown.dots} fill="none" stroke="var(--accent)" strokeWidth={5} strokeLinecap="round" vectorEffect="non-scaling-stroke" />}
        <path d={shown.line} fill="none" stroke="var(--accent)" strokeWidth={1.5} strokeLinecap="round" vectorEffect="non-scaling-stroke" />
      </svg>
      <p aria-hidden className="flex justify-between text-2xs text-muted">
        <span>{fill(texts.least, { low: short(shown.low) })}</span>
        <span>{fill(texts.most, { high: short(shown.high) })}</span>
      </p>
    </figure>
  );
}
