// @vitest-environment happy-dom
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, describe, expect, it } from 'vitest';
import type { JobEfficiency, RoleEfficiency } from '../api/types';
import { EfficiencyCard } from './JobEfficiency';

afterEach(cleanup);

const nothing = { devices: null, cpus: null, memoryBytes: null };
const role: RoleEfficiency = {
  role: 'worker',
  tasks: 2,
  measuredTasks: 2,
  deviceSeconds: 57_600,
  lostDeviceSeconds: 0,
  usedDeviceSeconds: 28_800,
  taskSeconds: 14_400,
  devicePercent: 50,
  deviceMemoryPercent: 30,
  asked: { devices: 8, cpus: 16, memoryBytes: 64 * 1024 ** 3 },
  mean: { devices: 4, cpus: 2.25, memoryBytes: 1024 ** 3 },
  most: { devices: 4, cpus: 3, memoryBytes: 2 * 1024 ** 3 },
  wouldDo: { devices: 4, cpus: 4, memoryBytes: 3 * 1024 ** 3 },
};
const job: JobEfficiency = {
  job: 'a',
  name: 'train',
  user: 'ada',
  queue: 'research',
  state: 'succeeded',
  deviceSeconds: 57_600,
  lostDeviceSeconds: 0,
  usedDeviceSeconds: 28_800,
  measuredDeviceSeconds: 57_600,
  longestSeconds: 3600,
  maxDurationSeconds: 0,
  wouldDoSeconds: null,
  roles: [role],
  words: ['Each task of worker held 8 devices.', '4 devices would have done.'],
};

describe('what a job asked for and used', () => {
  it('is a table of each task, with the request that would have done', () => {
    render(<EfficiencyCard said={job} />);
    expect(screen.getByRole('row', { name: 'asked for 8 16 64 GiB' })).toBeDefined();
    expect(screen.getByRole('row', { name: 'used on average 4 2.25 1 GiB' })).toBeDefined();
    expect(screen.getByRole('row', { name: 'would have done 4 4 3 GiB' })).toBeDefined();
    expect(screen.getByText('4 devices would have done.')).toBeDefined();
  });

  it('has no proposal where none is made, and names roles if there are several', () => {
    const other = { ...role, role: 'server', wouldDo: nothing };
    render(<EfficiencyCard said={{ ...job, roles: [role, other] }} />);
    expect(screen.getByRole('row', { name: /^worker: would have done/ })).toBeDefined();
    expect(screen.queryByRole('row', { name: /^server: would have done/ })).toBeNull();
  });

  it('says so where nothing was measured', () => {
    render(<EfficiencyCard said={{ ...job, words: ['Nothing was measured of this job.'], roles: [{ ...role, measuredTasks: 0 }] }} />);
    expect(screen.queryByRole('table')).toBeNull();
    expect(screen.getByText('Nothing was measured of this job.')).toBeDefined();
  });
});
