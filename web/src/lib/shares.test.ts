import { expect, it } from 'vitest';
import type { LineEntry, QueueStanding } from '../api/types';
import { amount, bar, own, resources, scaleOf, told, wants } from './shares';

const queue = (change: Partial<QueueStanding> = {}): QueueStanding => ({
  name: 'research', parent: '', depth: 0, weight: 1, guaranteed: {}, deserved: {}, limit: {}, borrowingLimit: {}, used: {}, fair: {},
  borrowed: {}, lent: {}, lentTo: {}, borrowedFrom: {}, cells: [], pinned: [], ownedDevices: 0, running: 0, guests: 0, waiting: 0, wanted: {},
  ...change,
});

it('counts owned cells as devices of its own, and as nothing else', () => {
  const owner = queue({ deserved: { devices: 4, cpu: 2000 }, ownedDevices: 8 });
  expect([own(owner, 'devices'), own(owner, 'cpu'), own(owner, 'memory')]).toEqual([12, 2000, 0]);
});

it('cuts a bar into what is its own, borrowed and idle, on one scale for all queues', () => {
  const lender = queue({ used: { devices: 2 }, deserved: { devices: 8 }, limit: { devices: 10 }, fair: { devices: 5 }, guaranteed: { devices: 1 } });
  const borrower = queue({ used: { devices: 6 }, deserved: { devices: 2 }, borrowed: { devices: 4 } });
  const scale = scaleOf([lender, borrower], 'devices');
  expect(scale).toBe(10);
  expect(bar(lender, 'devices', scale)).toEqual({ own: 0.2, borrowed: 0, idle: 0.6, limit: 1, fair: 0.5, guaranteed: 0.1 });
  expect(bar(borrower, 'devices', scale)).toEqual({ own: 0.2, borrowed: 0.4, idle: 0, limit: null, fair: null, guaranteed: 0 });
  expect(bar(queue(), 'devices', 0).own).toBe(0);
});

it('says a bar in words', () => {
  const borrower = queue({ used: { devices: 6 }, deserved: { devices: 2 }, borrowed: { devices: 4 }, limit: { devices: 8 } });
  expect(told(borrower, 'devices')).toBe('6 used, 4 of them borrowed, 2 its own, limit 8');
  expect(told(queue({ lent: { devices: 3 } }), 'devices')).toBe('0 used, 3 lent');
});

it('speaks of every resource in its unit, devices first', () => {
  expect(resources([queue({ used: { memory: 1, cpu: 1 }, deserved: { 'devices/a100': 1 } })])).toEqual(['devices', 'devices/a100', 'cpu', 'memory']);
  expect([amount('cpu', 2500), amount('memory', 2 ** 30), amount('devices', 2.667)]).toEqual(['2.5', '1Gi', '2.667']);
  expect([amount('devices', 0.5), amount('devices', 65_536.125)]).toEqual(['0.5', '65,536.125']);
});

it('says what a gang wants in few words', () => {
  const entry = { devices: 8, model: '', tasks: 2, cpuMillis: 0, level: 'rack', grows: false } as LineEntry;
  expect(wants(entry)).toBe('8 devices in 2 tasks, one rack');
  expect(wants({ ...entry, devices: 0, cpuMillis: 4000, level: '', grows: true })).toBe('4 processors in 2 tasks more');
});
