import { expect, it } from 'vitest';
import { limited, limitLine, limitsOf, manages, ownLimit } from './managing';

it('knows who manages a queue', () => {
  expect(manages(undefined, 'vision')).toBe(false);
  expect(manages({ role: 'user', manages: ['vision'] }, 'vision')).toBe(true);
  expect(manages({ role: 'user', manages: ['vision'] }, 'speech')).toBe(false);
  expect(manages({ role: 'user', manages: ['*'] }, 'speech')).toBe(true);
  expect(manages({ role: 'admin', manages: [] }, 'speech')).toBe(true);
});

it('sends only the limits that have an amount', () => {
  const cells = { limit: { devices: ' 4 ', cpu: '' }, userLimit: { memory: '64Gi' }, groupLimit: {} };
  expect(limitsOf(cells)).toEqual({ limit: { devices: '4' }, userLimit: { memory: '64Gi' }, groupLimit: {} });
});

it('has a row for each resource that some limit names', () => {
  expect(limited({}, { 'devices/a100': '4', devices: '8' })).toEqual(['devices', 'cpu', 'memory', 'devices/a100']);
});

it('reads what the document of the queue allows', () => {
  expect(ownLimit({ limit: { devices: 8 } }, 'limit')).toEqual({ devices: '8' });
  expect(ownLimit({}, 'userLimit')).toEqual({});
});

it('says the command that sets the same limits', () => {
  expect(limitLine('vision', { limit: {}, userLimit: { devices: '4' }, groupLimit: {} })).toBe('corral limit vision --user devices=4');
  expect(limitLine('vision', { limit: {}, userLimit: {}, groupLimit: {} })).toBe('corral limit vision --clear');
});
