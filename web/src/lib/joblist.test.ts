import { expect, it } from 'vitest';
import type { JobSummary } from '../api/types';
import { filterOf, gathered, jobsCsv, ownTags, readHidden, readTags, savedOf, toldApart, writeHidden } from './joblist';

const job = (given: Partial<JobSummary>) =>
  ({ id: 'j1', name: 'train', user: 'ada', queue: 'default', priority: 5, state: 'waiting', tasks: { total: 2 }, devices: 0.5, retries: 1, createdAt: '2026-11-28T12:00:00Z', startedAt: null, endedAt: null, exit: null, waiting: null, tags: ['a', 'b'], ...given }) as JobSummary;

it('keeps the columns that were left out, in one order, and forgets unknown ones', () => {
  expect(writeHidden(readHidden('why,user,of-tomorrow'))).toBe('user,why');
  expect(readHidden(null).size).toBe(0);
});

it('writes one line for each job, and no text that a spreadsheet takes for a formula', () => {
  const waits = { message: '=1+1, "now"' } as JobSummary['waiting'];
  const [head, line] = jobsCsv([job({ waiting: waits })]).split('\n');
  expect(head).toContain('id,name,user');
  expect(line).toBe(`j1,train,ada,default,5,waiting,2,0.5,1,2026-11-28T12:00:00Z,,,,,"'=1+1, ""now""",a b`);
});

it('leaves the last reason for waiting out of a job that is over', () => {
  const over = job({ state: 'failed', waiting: { message: 'no device' } as JobSummary['waiting'], exit: { code: 3, phrase: 'Failed' } as JobSummary['exit'] });
  expect(jobsCsv([over])).not.toContain('no device');
  expect(jobsCsv([over])).toContain(',3,Failed,');
});

it('saves a filter and reads it back as it was', () => {
  const filter = { state: 'running,failed', user: 'ada', q: 'llm', group: 'user' };
  expect(filterOf(savedOf('mine', filter))).toEqual(filter);
  expect(savedOf('none', {})).toEqual({ name: 'none', state: [], user: '', queue: '', q: '', tag: '', order: '', group: '', priority: '' });
});

it('gathers jobs by their user, in the order of the list', () => {
  const jobs = [job({ id: '1', user: 'mira' }), job({ id: '2', user: 'ada' }), job({ id: '3', user: 'mira' })];
  expect(gathered(jobs, 'user').map(({ name, jobs }) => [name, jobs.map(({ id }) => id)])).toEqual([['mira', ['1', '3']], ['ada', ['2']]]);
});

it('gathers a sweep by the number at the end of names, or by the array, and puts single jobs last', () => {
  const array = ['array:1'];
  const jobs = [
    job({ id: '1', name: 'alone', tags: [] }),
    job({ id: '2', name: 'lr-1', tags: [] }),
    job({ id: '3', name: 'lr-02', tags: [] }),
    job({ id: '4', name: 'lr-3', user: 'mira', tags: [] }),
    job({ id: '5', name: 'seed-0', tags: array }),
    job({ id: '6', name: 'seed-1', tags: array }),
    job({ id: '7', name: '2026', tags: [] }),
  ];
  expect(gathered(jobs, 'sweep').map(({ name, jobs }) => [name, jobs.map(({ id }) => id)])).toEqual([
    ['lr of ada', ['2', '3']],
    ['seed of ada', ['5', '6']],
    ['Single jobs', ['1', '4', '7']],
  ]);
});

it('reads tags with commas between them, and offers no tag of the server for removal', () => {
  expect(readTags(' paper, final ,,paper')).toEqual(['paper', 'final']);
  expect(ownTags([job({ tags: ['b', 'array:1'] }), job({ tags: ['a', 'b'] })])).toEqual(['a', 'b']);
});

it('calls jobs by their names, and those of one name by their users too', () => {
  const job = (id: string, user: string, name: string) => ({ id, user, name });
  const called = toldApart([job('1', 'ada', 'train'), job('2', 'bob', 'train'), job('3', 'bob', 'test'), job('2', 'bob', 'train')]);
  expect(Object.fromEntries(called)).toEqual({ 1: 'ada~train', 2: 'bob~train', 3: 'test' });
  expect([...toldApart([job('1', 'ada', 'train'), job('2', 'ada', 'train')]).values()]).toEqual(['ada~train (1)', 'ada~train (2)']);
});
