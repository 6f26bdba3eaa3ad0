/** What a profile says, in words and shapes. */

import type { ProfileCurve, ProfileReport, ProfileTop, ProfileView, RankTimes } from '../api/types';
import { counts } from '../texts/english/counts';
import { profiles as texts } from '../texts/english/profiles';
import { counted, fill, number } from '../texts/fill';
import { bytes } from './bytes';
import { between, duration } from './time';

/** The longest profile of each kind in seconds; stacks take no time. */
export const LONGEST: Record<ProfileView['what'], number> = { python: 60, stacks: 0, torch: 10, jax: 10, tensorflow: 10, memory: 30, system: 60 };

/** Whether a kind of profile is a trace of a framework. */
export const isTrace = (what: string) => ['torch', 'jax', 'tensorflow'].includes(what);

type Part = 'computing' | 'exposedCommunication' | 'copies' | 'dataWaits';
/** The parts of a rank's time with their colours; the rest is idle. */
export const PARTS: readonly (readonly [part: Part, colour: string])[] = [
  ['computing', 'var(--accent)'],
  ['exposedCommunication', 'var(--wait)'],
  ['copies', 'oklch(var(--hue-edge) 0.12 300)'],
  ['dataWaits', 'var(--fail)'],
];

export const percent = (share: number) => `${Math.round(share * 100)} %`;

/** By how many hundredths a share changed, with its sign. */
export function change(share: number): string {
  const hundredths = Math.round(share * 100);
  return `${hundredths > 0 ? '+' : ''}${hundredths || 0} %`;
}

/** The rectangles of one part of a timeline as a path in a box of one by one, on top of the parts before it. */
export function band(timeline: RankTimes['timeline'], part: number): string {
  const columns = PARTS.slice(0, part + 1).map(([name]) => timeline[name]);
  const own = columns[part] ?? [];
  const width = 1 / (own.length || 1);
  return own
    .map((share, at) => {
      if (share <= 0) return '';
      const below = columns.slice(0, part).reduce((sum, column) => sum + (column[at] ?? 0), 0);
      return `M${round(at * width)} ${round(1 - below)}h${round(width)}v${round(-share)}h${round(-width)}z`;
    })
    .join('');
}

const round = (value: number) => Number(value.toFixed(5));

/** A rank's time in words, for those who cannot see the picture. */
export function spoken(rank: RankTimes): string {
  const names = [...PARTS.map(([part]) => part), 'idle' as const];
  const parts = names.map((part) => fill(texts.partOf, { share: percent(rank.seconds ? rank[part] / rank.seconds : 0), part: texts.parts[part] }));
  return fill(texts.spoken, { rank: rank.rank, parts: parts.join(', ') });
}

/** The operators, kernels or collectives of all ranks, the longest first. */
export function together(reports: readonly RankTimes[], name: 'operators' | 'kernels' | 'collectives'): ProfileTop[] {
  const sums = new Map<string, ProfileTop>();
  for (const each of reports.flatMap((rank) => rank[name])) {
    const known = sums.get(each.name) ?? { name: each.name, seconds: 0, calls: 0 };
    sums.set(each.name, { name: each.name, seconds: known.seconds + each.seconds, calls: known.calls + each.calls });
  }
  return [...sums.values()].sort((a, b) => b.seconds - a.seconds || a.name.localeCompare(b.name));
}

/** How far a profile is that is being taken: a share and words. */
export function progress(profile: ProfileView, now: number): { share: number; words: string } {
  if (profile.state === 'reading') return { share: 0.95, words: texts.readingWhatCame };
  const since = between(profile.startsAt, now);
  if (since < 0) return { share: 0.05, words: fill(texts.allRanksBegin, { time: duration(Math.ceil(-since)) }) };
  if (since < profile.seconds) return { share: 0.1 + 0.6 * (since / profile.seconds), words: fill(texts.done, { done: Math.floor(since), seconds: profile.seconds }) };
  return { share: 0.75, words: texts.waitingAnswersTasks };
}

/** One sentence for the head of a report. */
export function summary(report: ProfileReport): string {
  const ranks = counted(counts.ranks, report.ranks.length);
  if (report.what === 'python') return counted(texts.samplesOf, report.samples, { ranks });
  if (report.what === 'memory') return fill(texts.grewIn, { bytes: bytes(report.samples * 1024), ranks });
  return ranks;
}

/** Bytes by which something grew, with their sign. */
export const grown = (size: number) => `${size < 0 ? '−' : '+'}${bytes(Math.abs(size))}`;

/** A figure with its unit. */
export const amount = (value: number, unit: string) => `${number(value, { maximumFractionDigits: value < 10 ? 2 : 0 })} ${unit}`.trim();

/** A curve in a box of `width` by `height`, from 0 to its greatest point. */
export function curvePath(points: readonly number[], width: number, height: number): string {
  const most = Math.max(...points, 0);
  const step = width / (points.length || 1);
  return points
    .map((value, at) => `${at ? 'L' : 'M'}${round(step * (at + 0.5))} ${round(most > 0 ? height * (1 - value / most) : height)}`)
    .join('');
}

/** A curve in words, for those who cannot see the picture. */
export function curveWords({ name, unit, points, most }: ProfileCurve): string {
  const [first, last] = [points[0] ?? 0, points.at(-1) ?? 0];
  return fill(texts.curve, { name, first: amount(first, unit), last: amount(last, unit), most: amount(most, unit) });
}
