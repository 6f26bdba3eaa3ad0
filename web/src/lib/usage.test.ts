import { describe, expect, it } from 'vitest';
import type { Budget, Charge, UsageReport, UsageRow } from '../api/types';
import { focusCsv } from './focus';
import { amount, asked, budgetBar, ceiling, chartWords, csvCell, daysOf, kilowattHours, idleHours, measuredWords, nameOf, OTHERS, period, reportCsv, stacks, usageLine, usedHours, usedPart, wastedPart } from './usage';

const NOW = Date.parse('2026-03-02T15:00:00Z');
const charge = (begin: string, user: string, quantity: number, more: Partial<Charge> = {}): Charge => ({
  begin: `${begin}T00:00:00.000Z`,
  end: `${begin}T23:00:00.000Z`,
  user,
  queue: 'research',
  model: 'h100',
  meter: 'device-hours',
  quantity,
  lost: 0,
  unitPrice: 2,
  cost: quantity * 2,
  used: 0,
  idle: 0,
  energyKwh: 0,
  ...more,
});

describe('a period', () => {
  it('is so many days that end today, or two days', () => {
    expect(period({}, NOW)).toEqual({ first: '2026-02-01', last: '2026-03-02' });
    expect(period({ days: '7' }, NOW)).toEqual({ first: '2026-02-24', last: '2026-03-02' });
    expect(period({ from: '2026-01-01', to: '2026-01-31', days: '7' }, NOW)).toEqual({ first: '2026-01-01', last: '2026-01-31' });
  });
  it('is the usual one where the address has none', () => {
    for (const broken of [{ days: '8' }, { from: '2026-01-01' }, { from: '2026-02-01', to: '2026-01-01' }, { from: 'x', to: 'y' }])
      expect(period(broken, NOW).first).toBe('2026-02-01');
  });
  it('is asked for to the end of its last day', () => {
    const days = { first: '2026-02-27', last: '2026-03-01' };
    expect(asked(days)).toEqual({ from: '2026-02-27', to: '2026-03-02' });
    expect(daysOf(days)).toEqual(['2026-02-27', '2026-02-28', '2026-03-01']);
    expect(usageLine('queue', days, '', 'research')).toBe('corral usage --by queue --from 2026-02-27 --to 2026-03-02 --queue research');
  });
});

describe('a chart', () => {
  const days = ['2026-03-01', '2026-03-02'];
  it('has a stack for each key, the largest first', () => {
    const all = [charge('2026-03-01', 'ann', 1), charge('2026-03-02', 'bob', 5), charge('2026-03-02', 'ann', 2), charge('2026-02-01', 'ann', 9)];
    expect(stacks(all, 'user', 'hours', days)).toEqual([
      { key: 'bob', values: [0, 5], total: 5 },
      { key: 'ann', values: [1, 2], total: 3 },
    ]);
  });
  it('counts devices as hours, and every meter as cost', () => {
    const all = [charge('2026-03-01', 'ann', 4, { lost: 1 }), charge('2026-03-01', 'ann', 8, { meter: 'cpu-hours', cost: 0.5 })];
    expect(stacks(all, 'user', 'hours', days)[0]?.total).toBe(4);
    expect(stacks(all, 'user', 'lost', days)[0]?.total).toBe(1);
    expect(stacks(all, 'user', 'cost', days)[0]?.total).toBe(8.5);
  });
  it('has one stack for all that are small', () => {
    const all = ['a', 'b', 'c', 'd'].map((user, at) => charge('2026-03-01', user, 10 - at));
    const found = stacks(all, 'user', 'hours', days, 3);
    expect(found.map(({ key, total }) => [key, total])).toEqual([['a', 10], ['b', 9], [OTHERS, 15]]);
    expect(chartWords(found, 'user', 'Device-hours', days)).toBe('Device-hours by day from 2026-03-01 to 2026-03-02, most on 2026-03-01 with 34.00; in all a 10.00, b 9.00, others 15.00');
  });
  it('ends at a round number', () => {
    expect([0, 0.07, 1, 1.2, 290, 999].map(ceiling)).toEqual([1, 0.08, 1, 1.5, 300, 1000]);
    expect([0, 0.00234, 12.345].map(amount)).toEqual(['0.00', '0.0023', '12.35']);
  });
});

const row = (key: string, more: Partial<UsageRow> = {}): UsageRow => ({
  key, name: '', deviceSeconds: 3600, lostDeviceSeconds: 900, taskSeconds: 3600, cpuSeconds: 7200, memoryGibSeconds: 0,
  measuredTaskSeconds: 0, usedCpuSeconds: 0, usedMemoryGibSeconds: 0, energyJoules: 0, measuredDeviceSeconds: 0, usedDeviceSeconds: 0, idleDeviceSeconds: 0, cost: null, ...more,
});

describe('a report', () => {
  it('names what has no name', () => {
    expect(nameOf('job', row('1abc', { name: 'train' }))).toBe('train');
    expect([nameOf('tag', row('')), nameOf('model', row('')), nameOf('user', row(''))]).toEqual(['(no tag)', '(no model)', '(removed)']);
  });
  it('says what was used of what was asked for, and of how much of the time', () => {
    const measured = row('a', { measuredTaskSeconds: 1800, usedCpuSeconds: 5400, energyJoules: 1_800_000 });
    expect([usedHours(measured, measured.usedCpuSeconds), kilowattHours(measured)]).toEqual(['1.50', '0.500']);
    expect([usedHours(row('a'), 0), kilowattHours(row('a'))]).toEqual(['', '']);
    expect(measuredWords(measured)).toBe('Tasks were measured for 50 % of their time: what was used, and the energy, are of that part.');
    const whole = { measuredTaskSeconds: 3590, measuredDeviceSeconds: 3590 };
    expect([measuredWords(row('a', whole)), measuredWords(row('', { taskSeconds: 0, deviceSeconds: 0 }))]).toEqual(['', '']);
    expect(measuredWords(row('a', { ...whole, measuredDeviceSeconds: 1800 }))).toBe('The use of devices was measured for 50 % of theirs: used and idle ones are of that part.');
  });
  it('says what was used of devices, and what was wasted of them', () => {
    const measured = row('a', { measuredDeviceSeconds: 1800, usedDeviceSeconds: 720, idleDeviceSeconds: 360 });
    expect([usedPart(measured), idleHours(measured), wastedPart(measured)]).toEqual(['40 %', '0.10', '35 %']);
    expect([usedPart(row('a')), idleHours(row('a')), wastedPart(row('a'))]).toEqual(['', '', '25 %']);
    expect(wastedPart(row('a', { deviceSeconds: 0, lostDeviceSeconds: 0 }))).toBe('');
  });
  it('is a file that no spreadsheet takes for formulas', () => {
    const report: UsageReport = { begin: 'B', end: 'E', by: 'tag', total: row(''), items: [row('=1+1', { name: 'a,"b"' })], leftOut: 0, currency: '' };
    expect(reportCsv(report).split('\n')[1]).toBe(`'=1+1,"a,""b""",B,E,3600,900,3600,7200,0,0,0,0,0,0,0,0,,`);
    expect(csvCell('@x')).toBe("'@x");
  });
  it('is FOCUS by charge', () => {
    const [head, line] = focusCsv([charge('2026-12-31', 'ann', 1.5, { unitPrice: 0, cost: 0, queue: '', model: '' })], 'XXX', 'https://corral').split('\n');
    const found = Object.fromEntries((head ?? '').split(',').map((name, at) => [name, (line ?? '').split(',')[at]]));
    expect(found).toMatchObject({
      BillingPeriodStart: '2026-12-01T00:00:00Z', BillingPeriodEnd: '2027-01-01T00:00:00Z', ChargePeriodEnd: '2026-12-31T23:00:00Z', ConsumedQuantity: '1.5',
      BilledCost: '0', ResourceType: '', SkuPriceId: 'device-hours/any/any', SubAccountId: 'ann', ChargeDescription: 'Device-hours of ann in queue ',
    });
  });
});

describe('a budget', () => {
  it('is a bar of what is used and promised', () => {
    const budget: Budget = { kind: 'queue', name: 'q', window: 'week', begin: '', end: '', allowed: 100, deviceHours: 100, used: 40, promised: 20, left: 40, warnAt: 0.8, state: 'open', topUps: [], setAt: '', setBy: '', whenUsedUp: 'warn' };
    expect(budgetBar(budget)).toEqual({ used: 0.4, promised: 0.2, warn: 0.8 });
    expect(budgetBar({ ...budget, used: 200, promised: 0 })).toEqual({ used: 1, promised: 0, warn: 0.4 });
    expect(budgetBar({ ...budget, allowed: 0, used: 0, promised: 0 }).used).toBe(0);
  });
});
