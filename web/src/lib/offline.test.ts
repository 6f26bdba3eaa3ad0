import { QueryCache, QueryClient, QueryObserver } from '@tanstack/react-query';
import { afterEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/client';
import { answers, arrived, comeBack, isOutage } from './offline';

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

test('a file that did not come is an outage, and a fault of the file is not', async () => {
  const missing = new TypeError('Failed to fetch dynamically imported module: /assets/Job-1.js');
  await expect(arrived(Promise.reject(missing))).rejects.toSatisfy(isOutage);
  const fault = new TypeError('undefined is not a function');
  await expect(arrived(Promise.reject(fault))).rejects.toBe(fault);
});

test('what the server did not answer is asked again once it does, and what it refused is not', async () => {
  vi.stubGlobal('fetch', () => Promise.resolve({ status: 200 }));
  const client: QueryClient = new QueryClient({ queryCache: new QueryCache({ onError: (error) => comeBack(client, error, 0) }) });
  const given = [new ApiError(0, 'unreachable', 'The server does not answer.'), new ApiError(0, 'unreachable', 'The server does not answer.'), null];
  const refused = vi.fn(() => Promise.reject(new ApiError(403, 'forbidden', 'You may not.')));
  const asked = vi.fn(() => {
    const error = given.shift();
    return error ? Promise.reject(error) : Promise.resolve('the answer');
  });
  const seen = [
    new QueryObserver(client, { queryKey: ['lost'], queryFn: asked, retry: false }).subscribe(() => undefined),
    new QueryObserver(client, { queryKey: ['refused'], queryFn: refused, retry: false }).subscribe(() => undefined),
  ];
  await vi.waitFor(() => expect(client.getQueryData(['lost'])).toBe('the answer'));
  seen.forEach((end) => end());
  expect(asked).toHaveBeenCalledTimes(3);
  expect(refused).toHaveBeenCalledTimes(1);
});
