/** The fairness of a week in words: which weeks there are, how even it was, who got less than it was owed, and waits. */

import type { FairnessReport, FairnessRow } from '../api/types';
import { fairness as texts } from '../texts/english/fairness';
import { counted, fill } from '../texts/fill';
import { quote } from './cli';
import { duration } from './time';
import { number } from './usage';

const DAY_MS = 86_400_000;

/** The ISO week of a time in UTC, such as `2026-W48`; weeks begin on Monday. */
export function weekOf(at: number): string {
  const day = new Date(Math.floor(at / DAY_MS) * DAY_MS);
  const thursday = new Date(day.getTime() + (3 - ((day.getUTCDay() + 6) % 7)) * DAY_MS);
  const year = thursday.getUTCFullYear();
  const week = Math.floor((thursday.getTime() - Date.UTC(year, 0, 1)) / (7 * DAY_MS)) + 1;
  return `${year}-W${String(week).padStart(2, '0')}`;
}

/** The week of now and those before it, the latest first. */
export const weeksUpTo = (now: number, many: number) => Array.from({ length: many }, (_, back) => weekOf(now - back * 7 * DAY_MS));

const FAR = 0.1;

/** How what a queue got stands to what it was owed: a shape, so that colour alone does not tell it, and words. */
export function ratioWords({ ratio }: Pick<FairnessRow, 'ratio'>): { shape: string; tone: string; words: string } {
  if (ratio === null) return { shape: '', tone: 'text-faint', words: texts.ratios.none };
  if (ratio < 1 - FAR) return { shape: '▼', tone: 'text-wait', words: texts.ratios.less };
  if (ratio > 1 + FAR) return { shape: '▲', tone: 'text-muted', words: texts.ratios.more };
  return { shape: '●', tone: 'text-muted', words: texts.ratios.even };
}

/** The report in sentences. */
export function fairnessWords(report: FairnessReport): string[] {
  const { items, jain, waitP50, waitP95, worstFinishTimeRatio } = report;
  const said: string[] = [];
  const shared = items.filter(({ ratio }) => ratio !== null);
  if (jain !== null && shared.length > 1)
    said.push(counted(texts.jain, shared.length, { jain: number(jain, 3), uneven: number(1 / shared.length) }));
  const least = shared.reduce<FairnessRow | null>((found, row) => (found === null || (row.ratio ?? 0) < (found.ratio ?? 0) ? row : found), null);
  if (least?.ratio != null && least.ratio < 1 - FAR) said.push(fill(texts.gotLeast, { queue: least.queue, percent: number(100 * least.ratio, 0) }));
  if (waitP50 !== null && waitP95 !== null) said.push(fill(texts.waits, { half: duration(waitP50), most: duration(waitP95) }));
  if (worstFinishTimeRatio !== null) said.push(fill(texts.slowest, { factor: number(worstFinishTimeRatio, 1) }));
  return said;
}

export const fairnessLine = (week: string) => ['corral usage fairness', ...(week ? ['--week', quote(week)] : [])].join(' ');
