import { expect, it } from 'vitest';
import type { JobSummary } from '../api/types';
import { jobsCsv, readHidden, writeHidden } from './joblist';

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
