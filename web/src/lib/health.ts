/** The health of nodes in words: states, signs, and what administrators can do about each. */

import type { Health, HealthEntry } from '../api/types';
import { quote } from './cli';

export type Act = 'repairing' | 'validate' | 'healthy';

export const ACT_WORDS: Record<Act, { title: string; does: string; hint: string }> = {
  repairing: { title: 'Repair', does: 'It takes no new tasks, and the ledger leaves it alone until you say that it is healthy or have it validated. What runs there runs on.', hint: 'board changed' },
  validate: { title: 'Validate', does: 'It takes no new tasks. Once nothing runs there, its validation job begins; the node opens again if that succeeds.', hint: 'after the repair' },
  healthy: { title: 'Healthy', does: 'It takes tasks again, and its score begins anew.', hint: 'cable changed' },
};

/** What can be done with a node in a state; a healthy one is left alone, taken over or checked. */
export function actsFor(state: Health['state']): Act[] {
  const all: Act[] = ['repairing', 'validate', 'healthy'];
  const present: Partial<Record<Health['state'], Act>> = { repairing: 'repairing', validating: 'validate', healthy: 'healthy' };
  return all.filter((act) => act !== present[state]);
}

const SHAPES: Record<Health['state'], string> = { healthy: '●', suspected: '◐', cordoned: '⊘', repairing: '⚒', validating: '◌' };

export const stateWords = (state: Health['state']) => `${SHAPES[state]} ${state}`;

export const toneOf = (state: Health['state']) => (state === 'healthy' ? 'text-muted' : state === 'cordoned' ? 'text-fail' : 'text-wait');

export const score = (value: number) => value.toFixed(1);

/** What an entry of the history says happened. */
export function happened(entry: HealthEntry): string {
  return entry.what === 'moved' ? `${entry.before} → ${entry.after}` : entry.what.replaceAll('-', ' ');
}

/** How much an entry adds to the score. */
export function adds(entry: HealthEntry): string {
  if (entry.what === 'moved') return '';
  return entry.weight > 0 ? `+${Number(entry.weight.toPrecision(3))}` : 'nothing';
}

/** How many nodes are in each state that is not healthy, those closed for trouble first. */
export function counts(all: readonly Health[]): [Health['state'], number][] {
  const order: Health['state'][] = ['cordoned', 'validating', 'repairing', 'suspected'];
  return order.map((state): [Health['state'], number] => [state, all.filter((each) => each.state === state).length]).filter(([, number]) => number > 0);
}

export function healthLine(act: Act, node: string, why: string): string {
  return ['corral', 'nodes', act, node, ...(why ? ['--why', why] : [])].map(quote).join(' ');
}
