import { expect, it } from 'vitest';
import type { JobOutcome, WhatIfAnswer } from '../api/types';
import { NO_GOAL } from './goal';
import { asked, move, NOTHING, polyline, starts, told, whatIfLine } from './whatif';

const FULL = { ...NOTHING, add: '4', like: 'local/node1', drain: 'local/n2', queue: 'research', deserved: '16', limit: ' 32 ', submit: 'name: more', times: '3', stop: ' old ', policy: 'fifo', documents: 'kind: Queue', hours: '72', seeds: '5', seed: '7', arrivals: true, goal: { ...NO_GOAL, metric: 'wait.p95', queue: 'research', value: ' 1h ', node: 'local/node1' } };

const job = (id: string, before: number | null, after: number | null, added = false): JobOutcome => ({
  id, name: id, user: 'ada', queue: 'research', devices: 4, waitedSeconds: 0, added,
  before: { p10: before, p50: before, p90: before }, after: { p10: after, p50: after, p90: after },
  neverBefore: false, neverAfter: false,
});

it('says a question as the server takes it and as a command', () => {
  expect(asked(FULL)).toEqual({
    addNodes: [{ count: 4, like: 'local/node1' }],
    drain: ['local/n2'],
    queues: { research: { deserved: { devices: '16' }, limit: { devices: '32' } } },
    submit: [{ job: 'name: more', times: 3 }],
    stop: ['old'],
    policy: 'fifo',
    documents: 'kind: Queue',
    horizonSeconds: 259_200,
    seeds: 5,
    seed: 7,
    timeline: true,
    arrivals: 'last-week',
    goal: 'wait.p95(queue=research) <= 1h',
    vary: 'nodes-like=local/node1',
  });
  expect(whatIfLine(FULL)).toBe(
    "corral what-if --add-nodes 4 --like local/node1 --drain local/n2 --queue research=deserved.devices:16,limit.devices:32 --submit job.yaml --times 3 --stop old --policy fifo --documents documents.yaml --horizon 72h --seeds 5 --seed 7 --arrivals last-week --goal 'wait.p95(queue=research) <= 1h' --vary nodes-like=local/node1",
  );
});

it('leaves out what is not filled in whole', () => {
  const half = { ...NOTHING, add: '4', queue: 'research' };
  expect(asked(half)).toMatchObject({ addNodes: [], queues: {}, drain: [], submit: [], stop: [], policy: '' });
  expect(whatIfLine(half)).toBe('corral what-if');
});

it('tells a start, or its spread over several courses', () => {
  expect(starts({ p10: 60, p50: 605, p90: null }, 5)).toBe('10m 5s (1m to later)');
  expect(starts({ p10: 60, p50: 605, p90: null }, 1)).toBe('10m 5s');
  expect(starts({ p10: null, p50: null, p90: null }, 5)).toBe('later');
  expect(starts({ p10: null, p50: null, p90: null }, 5, true)).toBe('never');
});

it('shows those that move most first, then the submitted', () => {
  const jobs = [job('a', 5, 5), job('new', null, 3, true), job('lose', 5, 9), job('gain', 100, 0)];
  const answer = { jobs, gains: ['gain'], losses: ['lose'] } as unknown as WhatIfAnswer;
  expect(told(answer).map((each) => each.id)).toEqual(['gain', 'lose', 'new', 'a']);
  expect(told(answer, 2)).toHaveLength(2);
  expect(jobs.map((each) => move(each, 1000))).toEqual([0, 0, 4, -100]);
  expect(move(job('never', null, 10), 1000)).toBe(-990);
});

it('draws values within its picture', () => {
  expect(polyline([0, 5, 10], 10, 100, 40)).toBe('0.0,40.0 50.0,20.0 100.0,0.0');
  expect(polyline([1], 0, 100, 40)).toBe('0.0,40.0');
});
