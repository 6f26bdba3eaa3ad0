import { expect, it } from 'vitest';
import { pages } from '../texts/english/palette';
import { called, PLACES, places, read, VERBS } from './palette';

const names = (text: string, admin = false) => places(text, admin).map(({ to }) => pages[to].name);

it('takes a verb for one only when a space ends it', () => {
  expect(read('stop llm pre')).toEqual({ verb: VERBS.find(({ name }) => name === 'stop'), rest: 'llm pre' });
  expect(read('STOP ').verb?.name).toBe('stop');
  expect(read('stop')).toEqual({ verb: null, rest: 'stop' });
  expect(read('stopwatch job')).toEqual({ verb: null, rest: 'stopwatch job' });
});

it('finds pages by the beginnings of their words, those named so first', () => {
  expect(names('wait')).toEqual(['Waiting list']);
  expect(names('quo')).toEqual(['Queues']);
  expect(names('po')).toEqual(['Configuration']);
  expect(names('po', true)).toEqual(['Policy shadow', 'Configuration']);
  expect(names('idle dev')).toEqual(['Idle devices']);
  expect(names('nowhere')).toEqual([]);
  expect(names('', true)).toHaveLength(PLACES.length);
});

it('offers each verb only for jobs in a state that it suits', () => {
  const suits = (state: 'waiting' | 'running' | 'failed') => VERBS.filter(({ fits }) => fits?.({ state }) ?? true).map(({ name }) => name);
  expect(suits('failed')).not.toContain('stop');
  expect(suits('failed')).toContain('delete');
  expect(suits('running')).not.toContain('edit');
  expect(suits('waiting')).toContain('edit');
});

it('offers no job that only the text before has found', () => {
  const job = { name: 'Train-LLM', id: '1m83abcd' };
  expect([called(job, 'llm'), called(job, '1m83'), called(job, ''), called(job, '83ab'), called(job, 'vit')]).toEqual([true, true, true, false, false]);
});
