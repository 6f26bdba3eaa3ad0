import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { address, ApiError, call, session } from './client';

const answered = vi.fn<(url: string, options: RequestInit) => Promise<Response>>();
beforeEach(() => vi.stubGlobal('fetch', answered));
afterEach(() => {
  vi.unstubAllGlobals();
  answered.mockReset();
  session.onLost = () => undefined;
});
const json = (body: unknown, status = 200) => new Response(JSON.stringify(body), { status });

it('repeats lists and leaves out what is empty', () => {
  expect(address('/jobs', { state: ['running', 'waiting'], q: '', user: undefined, limit: 5 })).toBe('/api/v3/jobs?state=running&state=waiting&limit=5');
});

it('shows the server that a change comes from its own page', async () => {
  answered.mockImplementation(async () => json({}));
  await call('/jobs/x/stop', { method: 'POST' });
  await call('/jobs');
  const headers = answered.mock.calls.map(([, options]) => new Headers(options.headers).get('X-Corral-CSRF'));
  expect(headers).toEqual(['1', null]);
});

it("throws the server's own sentence", async () => {
  answered.mockResolvedValue(json({ code: 'job-over', message: 'Job x is over already.' }, 409));
  const error = await call('/jobs/x/stop', { method: 'POST' }).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({ status: 409, code: 'job-over', message: 'Job x is over already.' });
});

it('says what to do when nobody answers', async () => {
  answered.mockRejectedValue(new TypeError('failed to fetch'));
  await expect(call('/jobs')).rejects.toMatchObject({ code: 'unreachable', message: expect.stringContaining('corral up') });
});

it('notices a lost session, but not a refused sign-in', async () => {
  const lost = vi.fn();
  session.onLost = lost;
  answered.mockImplementation(async () => json({ code: 'bad-token', message: '…' }, 401));
  await call('/login', { method: 'POST' }).catch(() => undefined);
  expect(lost).not.toHaveBeenCalled();
  await expect(call('/jobs')).rejects.toMatchObject({ status: 401, code: 'bad-token', message: 'Your session had ended. Sign in, and do this again.' });
  expect(lost).toHaveBeenCalledOnce();
});

it('reads an empty answer as nothing', async () => {
  answered.mockResolvedValue(new Response(null, { status: 204 }));
  expect(await call('/logout', { method: 'POST' })).toBeUndefined();
});
