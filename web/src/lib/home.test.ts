import { expect, it } from 'vitest';
import type { Alert, GroupView, IdleJob, JobSummary, Queue } from '../api/types';
import { changes, needs, queuesOf, readVisit, visit } from './home';

const NOW = Date.parse('2026-11-28T12:00:00Z');
const MINUTE = 60_000;
const ago = (minutes: number) => new Date(NOW - minutes * MINUTE).toISOString();
const job = (name: string, given: Partial<JobSummary>) => ({ id: name, name, user: 'ada', queue: 'default', state: 'waiting', createdAt: ago(1), startedAt: null, endedAt: null, ...given }) as JobSummary;

it('knows nothing of before on a first visit, and goes on with one visit while the page is looked at', () => {
  const first = visit(null, NOW);
  expect(first.known).toBeNull();
  expect(visit(first, NOW + 10 * MINUTE).known).toBeNull();
});

it('begins another visit after half an hour, and remembers when the page was last seen', () => {
  const before = visit({ seen: NOW - 31 * MINUTE, known: null }, NOW);
  expect(before.known).toBe(NOW - 31 * MINUTE);
  expect(visit(before, NOW + MINUTE).known).toBe(NOW - 31 * MINUTE);
});

it('forgets a visit that a wrong clock put into the future', () => {
  expect(visit({ seen: NOW + MINUTE, known: NOW }, NOW)).toEqual({ seen: NOW, known: null });
});

it('keeps a visit whose time is a second ahead, as a page knows the time of the server only so well', () => {
  expect(visit({ seen: NOW + 1000, known: NOW + 1000 }, NOW)).toEqual({ seen: NOW + 1000, known: NOW + 1000 });
});

it('takes nothing for a visit that is none', () => {
  for (const text of [null, 'null', '{', '7', '{"seen":"x","known":null}', '{"seen":1}']) expect(readVisit(text)).toBeNull();
  expect(readVisit('{"seen":1,"known":null}')).toEqual({ seen: 1, known: null });
});

it('tells the latest thing of each job, the newest first, and nothing that was known', () => {
  const jobs = [
    job('new', { createdAt: ago(3) }),
    job('old', { createdAt: ago(90) }),
    job('runs', { state: 'running', createdAt: ago(90), startedAt: ago(2) }),
    job('over', { state: 'failed', createdAt: ago(90), startedAt: ago(80), endedAt: ago(5) }),
    job('again', { state: 'running', createdAt: ago(90), startedAt: ago(70), endedAt: ago(5) }),
  ];
  expect(changes(jobs, NOW - 60 * MINUTE).map(({ job: { name }, word }) => `${name} ${word}`)).toEqual(['runs started', 'new submitted', 'over ended']);
});

it('asks for a look at fresh failures, long waits and own idle devices only', () => {
  const idle = (user: string) => ({ user, job: user, state: 'warned', actedAt: null, dryRun: false }) as IdleJob;
  const found = needs({
    user: 'ada',
    now: NOW,
    live: [job('long', { createdAt: ago(61) }), job('short', { createdAt: ago(59) }), job('runs', { state: 'running', createdAt: ago(99) })],
    ended: [job('today', { state: 'failed', endedAt: ago(60) }), job('past', { state: 'failed', endedAt: ago(25 * 60) }), job('well', { state: 'succeeded', endedAt: ago(1) })],
    idle: [idle('ada'), idle('bob')],
    alerts: [] as Alert[],
  });
  expect(found.failed.map(({ name }) => name)).toEqual(['today']);
  expect(found.waiting.map(({ name }) => name)).toEqual(['long']);
  expect(found.idle.map(({ user }) => user)).toEqual(['ada']);
});

it('counts queues with own jobs, managed ones and those of own groups as own', () => {
  const queues = ['default', 'research', 'evaluation', 'secret'].map((name) => ({ name, managers: name === 'evaluation' ? ['ada'] : [] }) as unknown as Queue);
  const group = (queue: string, ...members: string[]) => ({ queues: [queue], manages: [], members }) as unknown as GroupView;
  const found = queuesOf('ada', queues, [job('a', {})], [group('research', 'ada'), group('secret', 'bob')]);
  expect(found.map(({ name }) => name)).toEqual(['default', 'research', 'evaluation']);
});
