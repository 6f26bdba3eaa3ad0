/** The health of nodes in words: states, signs, and what administrators can do about each. */

import type { Health, HealthEntry } from '../api/types';
import { nodes as texts } from '../texts/english/nodes';
import { textOf } from '../texts/fill';
import { quote } from './cli';

export type Act = 'repairing' | 'validate' | 'healthy';

/** What can be done with a node in a state; a healthy one is left alone, taken over or checked. */
export function actsFor(state: Health['state']): Act[] {
  const all: Act[] = ['repairing', 'validate', 'healthy'];
  const present: Partial<Record<Health['state'], Act>> = { repairing: 'repairing', validating: 'validate', healthy: 'healthy' };
  return all.filter((act) => act !== present[state]);
}

const SHAPES: Record<Health['state'], string> = { healthy: '●', suspected: '◐', cordoned: '⊘', repairing: '⚒', validating: '◌' };

export const stateWords = (state: Health['state']) => `${SHAPES[state]} ${texts.states[state]}`;

export const toneOf = (state: Health['state']) => (state === 'healthy' ? 'text-muted' : state === 'cordoned' ? 'text-fail' : 'text-wait');

export const score = (value: number) => value.toFixed(1);

/** What an entry of the history says happened. */
export function happened(entry: HealthEntry): string {
  return entry.what === 'moved' ? `${textOf(texts.states, entry.before)} → ${textOf(texts.states, entry.after)}` : entry.what.replaceAll('-', ' ');
}

/** How much an entry adds to the score. */
export function adds(entry: HealthEntry): string {
  if (entry.what === 'moved') return '';
  return entry.weight > 0 ? `+${Number(entry.weight.toPrecision(3))}` : texts.nothing;
}

/** How many nodes are in each state that is not healthy, those closed for trouble first. */
export function counts(all: readonly Health[]): [Health['state'], number][] {
  const order: Health['state'][] = ['cordoned', 'validating', 'repairing', 'suspected'];
  return order.map((state): [Health['state'], number] => [state, all.filter((each) => each.state === state).length]).filter(([, number]) => number > 0);
}

export function healthLine(act: Act, node: string, why: string): string {
  return ['corral', 'nodes', act, node, ...(why ? ['--why', why] : [])].map(quote).join(' ');
}
