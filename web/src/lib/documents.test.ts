import { describe, expect, it } from 'vitest';
import type { Finding } from '../api/types';
import { guard, kindOf, KINDS, mayPreempt, outcome, sentence, template } from './documents';

const finding = (preemptible: boolean): Finding => ({ message: 'm', queue: 'q', level: 'node', model: '', needed: 2, available: 1, preemptible });

describe('new documents', () => {
  it('begin as the kind that their address names, in any case', () => {
    expect(kindOf('policy')).toBe('Policy');
    expect(kindOf('Job')).toBe('Queue');
  });

  it.each(KINDS)('say their kind first: %s', (kind) => {
    expect(template(kind).split('\n')[0]).toMatch(new RegExp(`^kind: ${kind}\\b`));
  });
});

describe('what would become of a document', () => {
  const document = { kind: 'Queue', name: 'vision', diff: '' };
  it.each([
    ['created', 0, 'Queue/vision is new'],
    ['changed', 3, 'Queue/vision changes, from revision 3'],
    ['unchanged', 3, 'Queue/vision stays as it is'],
    ['deleted', 3, 'Queue/vision goes'],
  ])('is told in words when it is %s', (action, revision, words) => {
    expect(outcome({ ...document, action, revision })).toBe(words);
  });
});

describe('preemption', () => {
  it('is offered only when it lifts every refusal', () => {
    expect(mayPreempt([finding(true), finding(true)])).toBe(true);
    expect(mayPreempt([finding(true), finding(false)])).toBe(false);
    expect(mayPreempt([])).toBe(false);
  });
});

describe('a guard', () => {
  it('names the revision that was edited, or says that there must be none', () => {
    expect(guard(4)).toEqual({ 'If-Match': '"4"' });
    expect(guard(0)).toEqual({ 'If-None-Match': '*' });
  });
});

it('makes a sentence of a clause, and leaves a path as it is written', () => {
  expect(sentence('jobs of the queue vision hold 6')).toBe('Jobs of the queue vision hold 6.');
  expect(sentence('queues.vision.cells[0]: with it')).toBe('queues.vision.cells[0]: with it.');
});
