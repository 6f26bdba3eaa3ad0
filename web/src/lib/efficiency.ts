/** What the jobs of a user or queue asked for and used, in words, with the request that would have done. */

import type { EfficiencyReport, EfficiencySum, JobEfficiency } from '../api/types';
import { quote } from './cli';
import { count } from './format';
import { duration } from './time';
import { asked, hours, type Period } from './usage';

const GIB = 1024 ** 3;

/** An amount with at most three digits; '' where there is none. */
export function number(value: number | null): string {
  return value === null ? '' : Number(value.toPrecision(3)).toLocaleString('en');
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
      devices === null ? '' : count(devices, 'device'),
      cpus === null ? '' : count(cpus, 'processor'),
      size(memoryBytes),
    ].filter(Boolean);
    if (parts.length === 0) return [];
    return [`${job.roles.length > 1 ? `${role}: ` : ''}${parts.join(', ')}`];
  });
  return job.wouldDoSeconds === null ? roles : [...roles, `maxDuration ${duration(job.wouldDoSeconds)}`];
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
  const said = [`${whose} held ${hours(total.deviceSeconds)} device-hours.`];
  if (total.lostDeviceSeconds > 0) said.push(`Attempts that came to nothing held ${hours(total.lostDeviceSeconds)} of them.`);
  said.push(measuredWords(total));
  const smaller = items.filter((job) => wouldHaveDone(job).length > 0).length;
  if (smaller > 0) said.push(`Of ${count(items.length, 'job')} ${smaller} could have asked for less.`);
  const less = items.reduce((sum, job) => sum + spared(job), 0);
  if (less > 0) said.push(`With as many devices as would have done they would have held ${hours(less)} device-hours less.`);
  if (leftOut > 0) said.push(`${count(leftOut, 'smaller job')} ${leftOut === 1 ? 'counts' : 'count'} in the device-hours alone.`);
  return said;
}

function measuredWords({ deviceSeconds, measuredDeviceSeconds: measured, usedDeviceSeconds: used }: EfficiencySum): string {
  if (deviceSeconds === 0) return 'They held no devices.';
  if (measured === 0) return 'The use of their devices was not measured.';
  const of = measured >= deviceSeconds * 0.995 ? 'Their devices were' : `Of ${hours(measured)} the use was measured: the devices were`;
  return `${of} used to ${usedPart(used, measured)}; ${hours(Math.max(0, measured - used))} device-hours were not used.`;
}

/** The command that shows the same. */
export function efficiencyLine({ first, last }: Period, user: string, queue: string): string {
  const { to } = asked({ first, last });
  const words = ['corral', 'efficiency', ...(user ? ['--user', user] : []), ...(queue ? ['--queue', queue] : []), '--from', first, '--to', to];
  return words.map(quote).join(' ');
}
