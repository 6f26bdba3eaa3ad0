import { expect, it } from 'vitest';
import { changedTerms, editLine, writtenDuration } from './editing';

const before = { priority: 'test', maxDuration: '2h', queue: 'default' };

it('asks for nothing but what differs', () => {
  expect(changedTerms(before, before)).toEqual({});
  expect(changedTerms(before, { priority: ' prod ', maxDuration: '2h', queue: 'default' })).toEqual({ priority: 'prod' });
  expect(changedTerms(before, { priority: '', maxDuration: '', queue: 'vision' })).toEqual({ maxDuration: '0', queue: 'vision' });
});

it('shows the command line that does the same', () => {
  expect(editLine('digits', { priority: 'prod', maxDuration: '30m', queue: 'vision' })).toBe('corral edit digits --priority prod --duration 30m --queue vision');
  expect(editLine('bob~digits', { priority: '-1' })).toBe("corral edit bob~digits --priority -1");
});

it('writes seconds as a job file does', () => {
  expect([0, 90, 5400, 86_400, 93_784].map(writtenDuration)).toEqual(['', '1m30s', '1h30m', '1d', '1d2h3m4s']);
});
