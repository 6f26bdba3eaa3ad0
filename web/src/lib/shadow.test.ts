import { expect, it } from 'vitest';
import type { RunningShadow, ShadowReport } from '../api/types';
import { inWords, movedJobs, part, runningInWords, runningRequest, shadowLine, shadowRequest } from './shadow';

const NOW = Date.parse('2026-11-28T12:34:56Z');
const BARE = { policy: 'srtf', documents: '', hours: '24', anew: false };

it('asks the server and writes the command alike', () => {
  expect(shadowRequest(BARE, NOW)).toEqual({ policy: 'srtf', documents: '', since: '', anew: false });
  expect(shadowLine(BARE, NOW)).toBe('corral policy shadow srtf --server');
  const full = { policy: ' fair+las ', documents: 'kind: Queue', hours: '4', anew: true };
  expect(shadowRequest(full, NOW)).toEqual({ policy: 'fair+las', documents: 'kind: Queue', since: '2026-11-28T08:34:00Z', anew: true });
  expect(shadowLine(full, NOW)).toBe('corral policy shadow fair+las --server --documents documents --from 2026-11-28T08:34:00Z --anew');
  expect(shadowLine({ ...BARE, policy: '', documents: 'kind: Queue' }, NOW)).toBe('corral policy shadow --server --documents documents');
});

const report = (alike: number, onlyInForce: number, onlyCandidate: number, jobs: [number, number, number]) =>
  ({
    inForce: 'fair',
    candidate: 'srtf',
    within: 60,
    total: { seconds: 14_400, decisions: { alike, elsewhere: 0, onlyInForce, onlyCandidate } },
    earlier: jobs[0],
    later: jobs[1],
    same: jobs[2],
  }) as unknown as ShadowReport;

it('tells a report in words', () => {
  expect(inWords(report(36, 10, 8, [4, 4, 32]))).toEqual([
    'For 4h, srtf decided beside fair.',
    '36 decisions are alike within 1m; 10 were made only in force and 8 only by the candidate.',
    'Of 40 jobs that started, it starts 4 earlier, 4 later, and 32 at the same time.',
  ]);
  expect(inWords(report(1, 1, 0, [0, 0, 1]))[1]).toBe('1 decision is alike within 1m; 1 was made only in force and 0 only by the candidate.');
  expect(inWords(report(3, 0, 0, [0, 0, 3]))[1]).toBe('It decided the same: 3 decisions within 1m.');
  expect(inWords(report(0, 0, 0, [0, 0, 0]))).toEqual(['For 4h, srtf decided beside fair.', 'Neither of both had anything to decide.']);
});

it('tells which jobs move, and by how much at least', () => {
  const moved = { job: 'x', user: 'ann', queue: 'default' };
  expect(movedJobs([{ ...moved, name: 'a', seconds: 4140, complete: true }, { ...moved, name: 'b', seconds: -61, complete: false }])).toBe('a (1h 9m earlier), b (at least 1m 1s later)');
});

it('draws a bar of anything that is not nothing', () => {
  expect([part(null, 5), part(0, 5), part(5, 5), part(1, 100_000), part(0, 0)]).toEqual([0, 0, 1, 0.005, 0]);
});

it('begins a running shadow some hours back, and lets it go on for a week', () => {
  expect(runningRequest(BARE, NOW)).toEqual({ policy: 'srtf', documents: '', since: '2026-11-27T12:34:00Z', hours: 192, anew: false });
  expect(runningRequest({ policy: ' las ', documents: 'kind: Queue', hours: '168', anew: true }, NOW)).toEqual({ policy: 'las', documents: 'kind: Queue', since: '2026-11-21T12:34:00Z', hours: 336, anew: true });
});

const running: RunningShadow = {
  state: 'running',
  candidate: 'srtf',
  user: 'ann',
  askedAt: '2026-11-28T12:34:00.000Z',
  begin: '2026-11-27T12:34:00.000Z',
  end: '2026-12-05T12:34:00.000Z',
  anew: false,
  reportedAt: null,
  nextAt: null,
  progress: null,
  trouble: '',
  error: null,
};

it('tells how a running shadow stands', () => {
  const began = 'srtf decides beside the policy in force, from 11-27 12:34 UTC on. ann began it.';
  expect(runningInWords(running)).toEqual([began, 'It goes on until 12-05 12:34 UTC. A report is being made.', 'There is no report yet.']);
  const waits = { ...running, anew: true, nextAt: '2026-11-28T14:01:30.000Z', reportedAt: '2026-11-28T13:01:30.000Z', trouble: 'Another policy is being compared.' };
  expect(runningInWords(waits)).toEqual([
    'srtf decides beside the policy in force, anew each hour, from 11-27 12:34 UTC on. ann began it.',
    'It goes on until 12-05 12:34 UTC. The next report comes at 11-28 14:01 UTC.',
    'Another policy is being compared.',
    'The report goes up to 11-28 13:01 UTC.',
  ]);
  expect(runningInWords({ ...running, state: 'stopped' })[1]).toBe('It was stopped.');
  expect(runningInWords({ ...running, state: 'done' })[1]).toBe('It ended at 12-05 12:34 UTC.');
  expect(runningInWords({ ...running, state: 'failed', error: { status: 503, code: 'question-too-long', message: 'It took too long.', problems: [] } })[1]).toBe('It ended: It took too long.');
});
