import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { labelLine, labelSources, taintLine, taintSources, type Sources } from './noderules';

const said = (sources: Sources | null) => parse(`{${Object.entries(sources!).map(([key, source]) => `${key}: ${source}`).join(', ')}}`) as Record<string, unknown>;

describe('a rule on a label', () => {
  it.each<[string, object]>([
    ['zone in (a, b)', { key: 'zone', operator: 'In', values: ['a', 'b'] }],
    ['zone notin (a)', { key: 'zone', operator: 'NotIn', values: ['a'] }],
    ['corral.dev/rdma', { key: 'corral.dev/rdma', operator: 'Exists' }],
    ['!spot', { key: 'spot', operator: 'DoesNotExist' }],
    ['memory > 40', { key: 'memory', operator: 'Gt', values: ['40'] }],
    ['memory < 80', { key: 'memory', operator: 'Lt', values: ['80'] }],
  ])('%s is read and written', (line, item) => {
    expect(said(labelSources(line))).toEqual(item);
    expect(labelLine(item as Record<string, unknown>)).toBe(line);
  });
  it('is In where the file does not say', () => expect(labelLine({ key: 'zone', values: [1, true] })).toBe('zone in (1, true)'));
  it.each(['zone in', 'zone in ()', 'zone in (a b)', 'zone = a', 'a b', '!', 'memory > big', 'zone in (a), b in (c)'])('%s is no rule yet', (line) => expect(labelSources(line)).toBeNull());
  it.each<[string, Record<string, unknown>]>([
    ['a value with a comma', { key: 'zone', values: ['a,b'] }],
    ['no values', { key: 'zone' }],
    ['an operator of its own', { key: 'zone', operator: 'Like', values: ['a'] }],
    ['a key that it does not know', { key: 'zone', values: ['a'], weight: 1 }],
  ])('with %s is left to the file', (_what, item) => expect(labelLine(item)).toBeNull());
});

describe('a tolerated taint', () => {
  it.each<[string, object]>([
    ['spot', { key: 'spot', operator: 'Exists' }],
    ['spot=yes', { key: 'spot', value: 'yes' }],
    ['spot=', { key: 'spot', value: '' }],
    ['spot:NoSchedule', { key: 'spot', operator: 'Exists', effect: 'NoSchedule' }],
    ['team=a:NoExecute 300', { key: 'team', value: 'a', effect: 'NoExecute', tolerationSeconds: 300 }],
    ['*', { operator: 'Exists' }],
    ['*:PreferNoSchedule', { operator: 'Exists', effect: 'PreferNoSchedule' }],
  ])('%s is read and written', (line, item) => {
    expect(said(taintSources(line))).toEqual(item);
    expect(taintLine(item as Record<string, unknown>)).toBe(line);
  });
  it.each(['spot:Never', 'spot:', '*=a', 'a b', 'spot=a=b'])('%s is none yet', (line) => expect(taintSources(line)).toBeNull());
  it('of other keys is left to the file', () => expect(taintLine({ key: 'spot', operator: 'Exists', why: 'cheap' })).toBeNull());
});
