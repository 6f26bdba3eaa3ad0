/** What the jobs of a user or queue asked for and used, in words, with the request that would have done. */

import type { EfficiencyReport, EfficiencySum, JobEfficiency } from '../api/types';
import { counts } from '../texts/english/counts';
import { efficiency as texts } from '../texts/english/efficiency';
import { counted, fill, number as written } from '../texts/fill';
import { quote } from './cli';
import { duration } from './time';
import { asked, hours, type Period } from './usage';

const GIB = 1024 ** 3;

/** An amount with at most three digits; '' where there is none. */
export function number(value: number | null): string {
  return value === null ? '' : written(Number(value.toPrecision(3)));
}

export function size(bytes: number | null): string {
  return bytes === null ? '' : `${number(bytes / GIB)} GiB`;
}

/** The part that was used, in percent; '' where nothing was measured. */
export function usedPart(used: number | null, measured: number): string {
  return used === null || !measured ? '' : `${Math.round((100 * used) / measured)} %`;
}

/** The smaller requests that would have done, one for each role that has any, and the shorter time. */
export function wouldHaveDone(job: JobEfficiency): string[] {
  const roles = job.roles.flatMap(({ role, wouldDo: { devices, cpus, memoryBytes } }) => {
    const parts = [
      devices === null ? '' : counted(counts.devices, devices),
      cpus === null ? '' : counted(counts.processors, cpus),
      size(memoryBytes),
    ].filter(Boolean);
    if (parts.length === 0) return [];
    const request = parts.join(', ');
    return [job.roles.length > 1 ? fill(texts.roleRequest, { role, request }) : request];
  });
  return job.wouldDoSeconds === null ? roles : [...roles, fill(texts.maxDuration, { time: duration(job.wouldDoSeconds) })];
}

/** Device-seconds that the smaller numbers of devices would have left to others. */
export function spared(job: JobEfficiency): number {
  return job.roles.reduce((sum, { deviceSeconds, asked: { devices }, wouldDo }) => {
    if (!devices || wouldDo.devices === null) return sum;
    return sum + deviceSeconds * Math.max(0, 1 - wouldDo.devices / devices);
  }, 0);
}

/** The sums of a report in sentences; `whose` begins the first, such as `Jobs of ann`. */
export function sumWords({ total, items, leftOut }: EfficiencyReport, whose: string): string[] {
  const said = [fill(texts.held, { whose, hours: hours(total.deviceSeconds) })];
  if (total.lostDeviceSeconds > 0) said.push(fill(texts.lost, { hours: hours(total.lostDeviceSeconds) }));
  said.push(measuredWords(total));
  const smaller = items.filter((job) => wouldHaveDone(job).length > 0).length;
  if (smaller > 0) said.push(counted(texts.couldAskLess, items.length, { smaller: written(smaller) }));
  const less = items.reduce((sum, job) => sum + spared(job), 0);
  if (less > 0) said.push(fill(texts.wouldHaveSpared, { hours: hours(less) }));
  if (leftOut > 0) said.push(counted(texts.leftOut, leftOut));
  return said;
}

function measuredWords({ deviceSeconds, measuredDeviceSeconds: measured, usedDeviceSeconds: used }: EfficiencySum): string {
  if (deviceSeconds === 0) return texts.noDevices;
  if (measured === 0) return texts.notMeasured;
  const text = measured >= deviceSeconds * 0.995 ? texts.measured : texts.measuredInPart;
  return fill(text, { measured: hours(measured), part: usedPart(used, measured), hours: hours(Math.max(0, measured - used)) });
}

/** The command that shows the same. */
export function efficiencyLine({ first, last }: Period, user: string, queue: string): string {
  const { to } = asked({ first, last });
  const words = ['corral', 'efficiency', ...(user ? ['--user', user] : []), ...(queue ? ['--queue', queue] : []), '--from', first, '--to', to];
  return words.map(quote).join(' ');
}
