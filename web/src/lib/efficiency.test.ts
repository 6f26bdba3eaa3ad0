import { describe, expect, it } from 'vitest';
import type { EfficiencyReport, JobEfficiency, RoleEfficiency } from '../api/types';
import { efficiencyLine, number, size, spared, sumWords, usedPart, wouldHaveDone } from './efficiency';

const HOUR = 3_600;
const GIB = 1024 ** 3;
const nothing = { devices: null, cpus: null, memoryBytes: null };
const role = (more: Partial<RoleEfficiency> = {}): RoleEfficiency => ({
  role: 'worker',
  tasks: 2,
  measuredTasks: 2,
  deviceSeconds: 16 * HOUR,
  lostDeviceSeconds: 0,
  usedDeviceSeconds: 4 * HOUR,
  taskSeconds: 2 * HOUR,
  devicePercent: 25,
  deviceMemoryPercent: 30,
  asked: { devices: 8, cpus: 16, memoryBytes: 64 * GIB },
  mean: nothing,
  most: nothing,
  wouldDo: { devices: 2, cpus: 1, memoryBytes: 1.5 * GIB },
  ...more,
});
const job = (more: Partial<JobEfficiency> = {}): JobEfficiency => ({
  job: 'a',
  name: 'train',
  user: 'ann',
  queue: 'lab',
  state: 'succeeded',
  deviceSeconds: 16 * HOUR,
  lostDeviceSeconds: 0,
  usedDeviceSeconds: 4 * HOUR,
  measuredDeviceSeconds: 16 * HOUR,
  longestSeconds: HOUR,
  maxDurationSeconds: 0,
  wouldDoSeconds: null,
  roles: [role()],
  words: [],
  ...more,
});
const report = (total: Partial<EfficiencyReport['total']>, more: Partial<EfficiencyReport> = {}): EfficiencyReport => ({
  begin: '',
  end: '',
  total: { key: '', deviceSeconds: 0, lostDeviceSeconds: 0, measuredDeviceSeconds: 0, usedDeviceSeconds: 0, ...total },
  users: [],
  items: [],
  leftOut: 0,
  ...more,
});

describe('what jobs asked for and used', () => {
  it('has the request that would have done, by role if there are several, with the time', () => {
    expect(wouldHaveDone(job())).toEqual(['2 devices, 1 processor, 1.5 GiB']);
    expect(wouldHaveDone(job({ roles: [role(), role({ role: 'server', wouldDo: nothing })], wouldDoSeconds: 90 * 60 }))).toEqual([
      'worker: 2 devices, 1 processor, 1.5 GiB',
      'maxDuration 1h 30m',
    ]);
    expect(wouldHaveDone(job({ roles: [role({ wouldDo: nothing })] }))).toEqual([]);
  });
  it('says how many device-hours smaller requests would have left', () => {
    expect(spared(job())).toBe(12 * HOUR);
    expect(spared(job({ roles: [role({ wouldDo: nothing }), role({ asked: nothing })] }))).toBe(0);
  });
  it('is summed in sentences', () => {
    const sums = { deviceSeconds: 20 * HOUR, lostDeviceSeconds: HOUR, measuredDeviceSeconds: 16 * HOUR, usedDeviceSeconds: 4 * HOUR };
    expect(sumWords(report(sums, { items: [job(), job({ roles: [role({ wouldDo: nothing })] })], leftOut: 1 }), 'Jobs of ann')).toEqual([
      'Jobs of ann held 20.00 device-hours.',
      'Attempts that came to nothing held 1.00 of them.',
      'Of 16.00 the use was measured: the devices were used to 25 %; 12.00 device-hours were not used.',
      'Of 2 jobs 1 could have asked for less.',
      'With as many devices as would have done they would have held 12.00 device-hours less.',
      '1 smaller job counts in the device-hours alone.',
    ]);
  });
  it('says what is not known', () => {
    expect(sumWords(report({ deviceSeconds: HOUR }), 'Jobs')).toEqual(['Jobs held 1.00 device-hours.', 'The use of their devices was not measured.']);
    expect(sumWords(report({}), 'Jobs')[1]).toBe('They held no devices.');
    expect([usedPart(null, 1), usedPart(0, 0), usedPart(1, 4)]).toEqual(['', '', '25 %']);
    expect([number(null), number(0.1234), number(1234), size(1.5 * GIB)]).toEqual(['', '0.123', '1,230', '1.5 GiB']);
  });
  it('has a command that shows the same', () => {
    expect(efficiencyLine({ first: '2026-11-20', last: '2026-11-26' }, 'ann', '')).toBe('corral efficiency --user ann --from 2026-11-20 --to 2026-11-27');
  });
});
