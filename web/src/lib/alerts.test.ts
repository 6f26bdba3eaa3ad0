import { describe, expect, it } from 'vitest';
import type { Alert } from '../api/types';
import { labelWords, matchersOf, matches, ordered, parts, readMatchers, said, shapeOf, silenceLine, toneOf, valueWords } from './alerts';

const alert = (name: string, more: Partial<Alert> = {}): Alert => ({
  fingerprint: name,
  name,
  state: 'firing',
  severity: 'warn',
  labels: { alertname: name, severity: 'warn' },
  annotations: {},
  value: null,
  since: '2026-11-28T10:00:00.000Z',
  firedAt: null,
  resolvedAt: null,
  source: 'rules',
  silencedBy: [],
  ...more,
});
const names = (alerts: Alert[]) => alerts.map(({ name }) => name);

describe('alerts', () => {
  it('come by severity, then the newest first', () => {
    const all = [alert('info', { severity: 'info' }), alert('odd', { severity: 'odd' }), alert('old', { since: '2026-11-27T10:00:00.000Z' }), alert('new'), alert('fatal', { severity: 'fatal' })];
    expect(names(ordered(all))).toEqual(['fatal', 'new', 'old', 'info', 'odd']);
  });
  it('are parted by what is to be done about them', () => {
    const found = parts([alert('a'), alert('b', { silencedBy: ['s'] }), alert('c', { state: 'pending' }), alert('d', { state: 'resolved', silencedBy: ['s'] })]);
    expect([found.firing, found.silenced, found.pending, found.over].map(names)).toEqual([['a'], ['b'], ['c'], ['d']]);
  });
  it('have labels in words, without those that the row tells elsewhere', () => {
    const labels = { alertname: 'Hot', severity: 'warn', node_name: 'n1', minor_number: '3', job: 'corral', pod_kind: 'x', empty: '' };
    expect(labelWords(labels)).toEqual(['node n1', 'device 3', 'pod kind x']);
  });
  it('say their summary, or else their description', () => {
    expect(said({ annotations: { summary: 'hot', description: 'very' } })).toBe('hot');
    expect(said({ annotations: { description: 'very' } })).toBe('very');
    expect(said({ annotations: {} })).toBe('');
  });
  it('have values without needless digits', () => {
    expect([null, 0, 92.66666, 1e-5, Infinity].map(valueWords)).toEqual(['–', '0', '92.67', '1.00e-5', 'Infinity']);
  });
  it('are told apart by shape as well as colour', () => {
    expect(['fatal', 'error', 'warning', 'info', ''].map(shapeOf)).toEqual(['✕', '✕', '▲', '●', '●']);
    expect(toneOf('critical')).toBe('fail');
  });
  it('are found by name, label and words', () => {
    const hot = alert('Hot', { labels: { alertname: 'Hot', node_name: 'rack3-n1' }, annotations: { summary: 'It glows.' } });
    expect(['', 'hot', 'node_name=rack3', 'node rack3', 'GLOWS'].every((q) => matches(hot, q))).toBe(true);
    expect(matches(hot, 'cold')).toBe(false);
  });
});

describe('a silence', () => {
  it('begins with the labels of its alert', () => {
    expect(matchersOf(alert('Hot', { labels: { alertname: 'Hot', path: '/a b', none: '', odd: 'a\nb' } }))).toEqual(['alertname="Hot"', 'path="/a b"']);
  });
  it('reads a matcher a line', () => {
    expect(readMatchers(' a="b" \n\n c=~"d.*"\n')).toEqual(['a="b"', 'c=~"d.*"']);
  });
  it('has a command line', () => {
    expect(silenceLine(['node_name="n1"'], '2h', "the fan's gone")).toBe(`corral alerts silence 'node_name="n1"' --for 2h --reason 'the fan'\\''s gone'`);
    expect(silenceLine([], '1d', '')).toBe('corral alerts silence MATCHER --for 1d --reason TEXT');
  });
});
