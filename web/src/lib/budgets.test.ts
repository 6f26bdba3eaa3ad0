import { describe, expect, it } from 'vitest';
import type { Budget } from '../api/types';
import { begun, budgetPath, isReady, readHours, readWarn, removeLine, sameBudget, setEffect, setLine, topUpEffect, topUpLine } from './budgets';

const AT = '2026-11-28T00:00:00.000Z';
const budget = (more: Partial<Budget> = {}): Budget => ({
  kind: 'queue',
  name: 'lab',
  window: 'week',
  begin: AT,
  end: AT,
  allowed: 500,
  deviceHours: 400,
  used: 300,
  promised: 60,
  left: 140,
  warnAt: 0.8,
  state: 'open',
  topUps: [{ deviceHours: 100, at: AT, actor: 'root', reason: 'paper' }],
  setAt: AT,
  setBy: 'root',
  whenUsedUp: 'warn',
  ...more,
});
const wanted = (more = {}) => ({ ...begun(budget()), ...more });

describe('a form for a budget', () => {
  it('begins with the budget that is changed, or with a new one', () => {
    expect(begun(budget({ warnAt: 0.29 }))).toEqual({ kind: 'queue', name: 'lab', window: 'week', hours: '400', warn: '29', then: 'warn' });
    expect(begun(null)).toEqual({ kind: 'queue', name: '', window: 'week', hours: '', warn: '80', then: 'warn' });
    expect(begun(budget({ whenUsedUp: 'hold' })).then).toBe('hold');
  });
  it('takes hours above 0 and a part up to 100 %', () => {
    expect(['', ' ', '0', '-1', 'x', '1e10', '0.5', '500'].map(readHours)).toEqual([null, null, null, null, null, null, 0.5, 500]);
    expect(['', '0', '101', '80', '12.5'].map(readWarn)).toEqual([null, null, null, 0.8, 0.125]);
    expect([isReady(wanted()), isReady(wanted({ name: ' ' })), isReady(wanted({ hours: '0' })), isReady(wanted({ warn: '' }))]).toEqual([true, false, false, false]);
  });
  it('says what setting it does to the present window, with what was added to it', () => {
    expect(setEffect(wanted({ hours: '800' }), budget())).toBe('Then 540.0 of 900.0 device-hours are left in this week.');
    expect(setEffect(wanted({ hours: '300' }), budget())).toBe('Then 40.0 of 400.0 device-hours are left in this week: submissions are warned.');
    expect(setEffect(wanted({ hours: '200' }), budget())).toContain('it is used up, so submissions with devices are refused.');
    expect(setEffect(wanted({ hours: '100', then: 'hold' }), budget())).toContain('its jobs with devices are suspended, and new ones refused.');
    expect(setEffect(wanted({ hours: '200', then: 'hold' }), budget({ used: 290 }))).toContain('so submissions with devices are refused.');
    expect(setEffect(wanted({ hours: '' }), budget())).toBe('');
    expect(setEffect(wanted(), undefined)).toContain('since this week began counts');
  });
  it('says what adding to it does', () => {
    expect(topUpEffect(budget(), '50')).toBe('Then 190.0 of 550.0 device-hours are left in this week. From the next week on it is 400.0 again.');
    expect(topUpEffect(budget(), 'x')).toBe('');
  });
  it('has an address and commands that do the same', () => {
    expect(budgetPath({ kind: 'user', name: ' a b ', window: 'day' })).toBe('/budgets/user/a%20b/day');
    expect(sameBudget(budget(), { kind: 'queue', name: 'lab ', window: 'week' })).toBe(true);
    expect(sameBudget(budget(), { kind: 'queue', name: 'lab', window: 'day' })).toBe(false);
    expect(setLine(wanted())).toBe('corral budget set queue lab week 400');
    expect(setLine(wanted({ name: '', hours: '', warn: '90' }))).toBe('corral budget set queue NAME week DEVICE-HOURS --warn-at 0.9');
    expect(setLine(wanted({ then: 'hold' }))).toBe('corral budget set queue lab week 400 --when-used-up hold');
    expect(topUpLine(budget(), '50', 'the paper')).toBe("corral budget top-up queue lab week 50 --reason 'the paper'");
    expect(removeLine(budget())).toBe('corral budget remove queue lab week');
  });
});
