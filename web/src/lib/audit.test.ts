import { expect, it } from 'vitest';
import { auditCsv, auditLine, begin, detailWords, jobOf, query } from './audit';

const LINE = { seq: 3, at: '2026-11-29T04:00:00Z', actor: 'ada', action: 'job.stop', resource: 'job:j1', rule: 'owner', allowed: false, detail: { why: 'late', tries: 2, role: null, groups: [] } };

it('says the same on the command line, and quotes what people typed', () => {
  expect(auditLine({})).toBe('corral audit');
  expect(auditLine({ by: 'ada b', action: 'job', resource: 'user:x', refused: '1', days: '7' })).toBe("corral audit --by 'ada b' --action job --resource user:x --refused --since 7d");
  expect(auditLine({ days: '8' })).toBe('corral audit');
});

it('asks for lines since so many days, or for all', () => {
  const now = Date.parse('2026-11-29T00:00:00Z');
  expect(begin({ days: '1' }, now)).toBe('2026-11-28T00:00:00.000Z');
  expect(begin({ days: 'x' }, now)).toBeUndefined();
  expect(query({ by: 'ada', refused: '1' })).toEqual({ by: 'ada', action: undefined, resource: undefined, refused: true });
});

it('knows the job that a line is about', () => {
  expect(jobOf(LINE)).toBe('j1');
  expect(['job', 'job:', 'job:a/b', 'user:j1', 'myjob:j1'].map((resource) => jobOf({ resource }))).toEqual(Array(5).fill(undefined));
});

it('puts the lines into a file', () => {
  expect(detailWords(LINE)).toEqual(['why: late', 'tries: 2']);
  expect(auditCsv([LINE]).split('\r\n').filter(Boolean).at(-1)).toContain('job:j1');
});
