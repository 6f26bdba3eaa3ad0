import { afterEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/client';
import { answers, isOutage } from './offline';

afterEach(() => vi.unstubAllGlobals());

test.each([
  [new ApiError(0, 'unreachable', 'The server does not answer.'), true],
  [new ApiError(502, 'unknown', 'The server answered 502 without a reason.'), true],
  [new ApiError(404, 'job-not-found', 'There is no job x.'), false],
  [new TypeError('Failed to fetch dynamically imported module: /assets/Job-1.js'), true],
  [new TypeError('undefined is not a function'), false],
  ['text', false],
])('an outage is told from other faults: %s', (error, outage) => {
  expect(isOutage(error)).toBe(outage);
});

test('the server is asked until it answers', async () => {
  const given = [() => Promise.reject(new TypeError('refused')), () => Promise.resolve({ status: 503 }), () => Promise.resolve({ status: 200 })];
  const asked = vi.fn(() => given.shift()!());
  vi.stubGlobal('fetch', asked);
  await answers(new AbortController().signal, 0);
  expect(asked).toHaveBeenCalledTimes(3);
});
