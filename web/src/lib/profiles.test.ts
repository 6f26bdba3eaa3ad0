import { describe, expect, it } from 'vitest';
import type { ProfileView, RankTimes } from '../api/types';
import { band, change, progress, spoken, together } from './profiles';

const RANK: RankTimes = {
  rank: 'worker-0 process 7', seconds: 2, computing: 1, exposedCommunication: 0.5, copies: 0, dataWaits: 0.25, idle: 0.25,
  communication: 0.5, device: false, steps: 4, kernels: [], collectives: [],
  operators: [{ name: 'mm', seconds: 1, calls: 2 }],
  timeline: { computing: [1, 0.5], exposedCommunication: [0, 0.25], copies: [0, 0], dataWaits: [0, 0.25] },
};
const PROFILE: ProfileView = {
  id: 'a', job: 'j', jobName: 'job', what: 'torch', seconds: 2, state: 'taking', takenBy: 'ann', takenAt: '2026-11-28T10:00:00.000Z',
  startsAt: '2026-11-28T10:00:11.000Z', tasks: [], ranks: 0, problem: '', problems: [], files: [], size: 0,
};
const at = (seconds: number) => Date.parse(PROFILE.takenAt) + seconds * 1000;

describe('a timeline', () => {
  it('puts the parts on top of each other and leaves empty spans out', () => {
    expect(band(RANK.timeline, 0)).toBe('M0 1h0.5v-1h-0.5zM0.5 1h0.5v-0.5h-0.5z');
    expect(band(RANK.timeline, 1)).toBe('M0.5 0.5h0.5v-0.25h-0.5z');
    expect(band(RANK.timeline, 3)).toBe('M0.5 0.25h0.5v-0.25h-0.5z');
    expect(band(RANK.timeline, 2)).toBe('');
  });

  it('says how a share changed, and a change too small to say has no sign', () => {
    expect([0.123, -0.4, 0.001, -0.001].map(change)).toEqual(['+12 %', '-40 %', '0 %', '0 %']);
  });

  it('is told in words', () => {
    expect(spoken(RANK)).toBe('worker-0 process 7: 50 % computing, 25 % communication, 0 % copies, 13 % waits for data, 13 % idle');
  });
});

describe('a profile', () => {
  it('adds operators of all ranks up, the longest first', () => {
    const other = { ...RANK, operators: [{ name: 'mm', seconds: 1, calls: 1 }, { name: 'add', seconds: 3, calls: 9 }] };
    expect(together([RANK, other], 'operators')).toEqual([
      { name: 'add', seconds: 3, calls: 9 },
      { name: 'mm', seconds: 2, calls: 3 },
    ]);
  });

  it('says how far it is, and never goes back', () => {
    const seen = [0, 10.5, 11.5, 12.5, 20].map((second) => progress(PROFILE, at(second)));
    expect(seen.map(({ words }) => words)).toEqual([
      'All ranks begin in 11s', 'All ranks begin in 1s', '0 of 2 s', '1 of 2 s', 'Waiting for the answers of the tasks',
    ]);
    const shares = [...seen.map(({ share }) => share), progress({ ...PROFILE, state: 'reading' }, at(1)).share];
    expect([...shares].sort((a, b) => a - b)).toEqual(shares);
  });
});
