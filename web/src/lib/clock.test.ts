import { afterEach, expect, it, vi } from 'vitest';
import { aheadBy, learn, serverNow, serverToday } from './clock';

const NOON = Date.parse('2026-11-28T12:00:00Z');
const HOUR = 3_600_000;
const NOON_TOLD = 'Sat, 28 Nov 2026 12:00:00 GMT';

afterEach(() => {
  learn(new Date().toUTCString(), Date.now());
  vi.useRealTimers();
});

it('tells how far the server is ahead or behind', () => {
  expect(aheadBy('Sat, 28 Nov 2026 13:00:00 GMT', NOON, NOON, 0)).toBe(HOUR);
  expect(aheadBy('Sat, 28 Nov 2026 11:00:00 GMT', NOON, NOON, 0)).toBe(-HOUR + 1_000);
});

it('believes what it did while an answer allows it, however long the answer took', () => {
  expect(aheadBy(NOON_TOLD, NOON, NOON, 400)).toBe(400);
  expect(aheadBy(NOON_TOLD, NOON - 2_000, NOON + 30_000, 0)).toBe(0);
  expect(aheadBy(NOON_TOLD, NOON - 2_000, NOON + 30_000, HOUR)).toBe(3_000);
});

it('learns nothing from an answer without a time', () => {
  expect(aheadBy(null, NOON, NOON, 7)).toBe(7);
  expect(aheadBy('yesterday', NOON, NOON, 7)).toBe(7);
});

it('goes by the time of the last answer that told one, and follows a clock that is set right', () => {
  vi.useFakeTimers({ now: NOON });
  learn('Sun, 29 Nov 2026 12:00:00 GMT', NOON);
  learn(null, NOON);
  expect(serverNow()).toBe(NOON + 24 * HOUR);
  expect(serverToday()).toBe('2026-11-29');
  vi.setSystemTime(NOON + 24 * HOUR);
  learn('Sun, 29 Nov 2026 12:00:00 GMT', NOON + 24 * HOUR);
  expect(Math.abs(serverNow() - NOON - 24 * HOUR)).toBeLessThanOrEqual(1_000);
});
