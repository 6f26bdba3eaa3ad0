/** The numbers of a work report as words. */

import type { JobDetail } from '../api/types';

type Work = NonNullable<JobDetail['work']>;

function short(value: number): string {
  return value !== 0 && Math.abs(value) < 0.001 ? value.toExponential(2) : Number(value.toPrecision(4)).toLocaleString('en', { maximumFractionDigits: 6 });
}

/** Step, loss, throughput and gradient noise, as far as the program said them. */
export function numbersOf(work: Work): string[] {
  const words: string[] = [];
  if (work.step !== null) words.push(`step ${work.step.toLocaleString('en')}${work.steps === null ? '' : ` of ${work.steps.toLocaleString('en')}`}`);
  if (work.loss !== null) words.push(`loss ${short(work.loss)}`);
  if (work.throughput !== null) words.push(`${short(work.throughput)}/s`);
  if (work.gradientNoise !== null) words.push(`gradient noise ${short(work.gradientNoise)}`);
  return words;
}
