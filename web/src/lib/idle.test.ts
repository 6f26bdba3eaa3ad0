import { describe, expect, it } from 'vitest';
import type { IdleJob } from '../api/types';
import { coming, extendLine, idleWords, matches, mayExtend, parts, standing } from './idle';

const AT = '2026-11-28T12:00:00.000Z';
const job = (more: Partial<IdleJob> = {}): IdleJob => ({
  job: 'j1',
  name: 'train',
  user: 'ann',
  queue: 'lab',
  state: 'warned',
  since: AT,
  idle: 2,
  held: 8,
  wastedDeviceSeconds: 7_200,
  warnedAt: AT,
  actedAt: null,
  extendedAt: null,
  extendedUntil: null,
  reason: '',
  dryRun: false,
  action: 'suspend',
  actsAt: AT,
  ...more,
});
const ann = { user: 'ann', role: 'user' } as const;

describe('a job with idle devices', () => {
  it('says what is done and when, or what was done', () => {
    expect(coming(job())).toEqual({ words: 'is suspended', at: AT, over: false });
    expect(coming(job({ state: 'acted', actsAt: null, actedAt: AT, action: 'stop' }))).toEqual({ words: 'was stopped', at: AT, over: true });
    expect(coming(job({ action: 'warn', actsAt: null })).words).toBe('nothing more is done');
    expect(coming(job({ state: 'busy', action: '', actsAt: null })).words).toBe('');
  });
  it('is only reported in a dry run', () => {
    expect(coming(job({ dryRun: true })).words).toBe('would be suspended');
    expect(coming(job({ dryRun: true, state: 'acted', actedAt: AT, action: 'shrink' })).words).toBe('would have been shrunk to its minimum');
    expect(standing(job({ dryRun: true })).word).toBe('▲ reported');
  });
  it('has a word and a shape for each state', () => {
    const words = (['warned', 'extended', 'idle', 'busy'] as const).map((state) => standing(job({ state })).word);
    expect(words).toEqual(['▲ warned', '◷ more time', '◌ idle', '● in use']);
    expect(standing(job({ state: 'acted', actedAt: AT })).word).toBe('✕ suspended');
  });
  it('names the devices and what is wasted', () => {
    expect(idleWords(job())).toBe('2 of its 8 devices are idle; 2.0 device-hours are wasted.');
    expect(idleWords(job({ idle: 1 }))).toContain('1 of its 8 devices is idle');
    expect(idleWords(job({ held: 1 }))).toContain('Its device is idle;');
  });
  it('is given more time once, by its owner or an administrator', () => {
    expect(mayExtend(job(), ann)).toBe(true);
    expect(mayExtend(job(), { user: 'root', role: 'admin' })).toBe(true);
    expect(mayExtend(job(), { user: 'bob', role: 'user' })).toBe(false);
    for (const more of [{ extendedAt: AT }, { dryRun: true }, { state: 'acted' }] as const) expect(mayExtend(job(more), ann)).toBe(false);
  });
  it('is listed by what is to be done about it', () => {
    const found = parts([job({ job: 'a' }), job({ job: 'b', state: 'busy' }), job({ job: 'c', dryRun: true, state: 'busy' }), job({ job: 'd', state: 'acted' })]);
    expect([found.now, found.before, found.dry].map((jobs) => jobs.map((each) => each.job))).toEqual([['a', 'd'], ['b'], ['c']]);
    expect([matches(job(), 'LAB'), matches(job(), 'bob'), matches(job(), '')]).toEqual([true, false, true]);
  });
  it('has a command that asks for more time', () => {
    expect(extendLine(job(), 'ann', '')).toBe('corral idle extend train --reason TEXT');
    expect(extendLine(job(), 'root', "it's late")).toBe(`corral idle extend ann~train --reason 'it'\\''s late'`);
  });
});
