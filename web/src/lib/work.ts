/** The numbers of a work report as words. */

import type { JobDetail } from '../api/types';
import { job as texts } from '../texts/english/job';
import { fill, number } from '../texts/fill';

type Work = NonNullable<JobDetail['work']>;

function short(value: number): string {
  return value !== 0 && Math.abs(value) < 0.001 ? value.toExponential(2) : number(Number(value.toPrecision(4)), { maximumFractionDigits: 6 });
}

/** Step, loss, throughput and gradient noise, as far as the program said them. */
export function numbersOf(work: Work): string[] {
  const words: string[] = [];
  if (work.step !== null) words.push(fill(work.steps === null ? texts.stepAt : texts.stepOf, { step: number(work.step), steps: number(work.steps ?? 0) }));
  if (work.loss !== null) words.push(fill(texts.loss, { loss: short(work.loss) }));
  if (work.throughput !== null) words.push(`${short(work.throughput)}/s`);
  if (work.gradientNoise !== null) words.push(fill(texts.gradientNoise, { noise: short(work.gradientNoise) }));
  return words;
}
