/** The goal of a what-if question: what is to hold, and what is raised until it does. */

import { FIELDS, type Goal, METRICS, withMetric } from '../lib/goal';
import { goal as texts } from '../texts/english/whatif';
import { Choice, Options } from './WhatIfFields';

interface Props {
  goal: Goal;
  set: (goal: Goal) => void;
  nodes: readonly string[];
  queues: readonly string[];
  /** Whether a goal may be about all queues: administrators' may. */
  ofAll: boolean;
}

export function WhatIfGoal({ goal, set, nodes, queues, ofAll }: Props) {
  const change = (part: Partial<Goal>) => set({ ...goal, ...part });
  const choose = (metric: string) => set({ ...withMetric(goal, metric), node: goal.node || (nodes[0] ?? ''), queue: goal.queue || (ofAll ? '' : (queues[0] ?? '')) });
  return (
    <fieldset className="min-w-0 space-y-3 border-t border-line pt-3">
      <legend className="sr-only">{texts.goal}</legend>
      <Choice label={texts.findLeast} value={goal.metric} onChange={choose}>
        <Options none="–" words={METRICS.map(([metric, name]) => [metric, texts.metrics[name]] as const)} />
      </Choice>
      {goal.metric && (
        <>
          <Choice label={texts.ofQueue} value={goal.queue} required={!ofAll} onChange={(queue) => change({ queue })}>
            <Options none={ofAll ? texts.allQueues : undefined} words={queues} />
          </Choice>
          <div className="grid grid-cols-[6.5rem_1fr] gap-2">
            <Choice label={texts.is} value={goal.comparison} onChange={(comparison) => change({ comparison })}>
              <Options words={[['<=', texts.comparisons.atMost], ['>=', texts.comparisons.atLeast]]} />
            </Choice>
            <label className="block min-w-0 space-y-1">
              <span className="label">{texts.value}</span>
              <input className="field" required maxLength={100} placeholder="1h, 80%, 0.9 * base" value={goal.value} onChange={(event) => change({ value: event.target.value })} autoComplete="off" />
            </label>
          </div>
          <Choice label={texts.byRaising} value={goal.vary} onChange={(vary) => change({ vary, varied: goal.varied || goal.queue || (queues[0] ?? '') })}>
            <Options words={[['nodes', texts.raised.nodes], ['queue', texts.raised.queue]]} />
          </Choice>
          {goal.vary === 'nodes' ? (
            <Choice label={texts.nodesLike} value={goal.node} required onChange={(node) => change({ node })}>
              <Options none="–" words={nodes} />
            </Choice>
          ) : (
            <div className="grid grid-cols-2 gap-2">
              <Choice label={texts.raisedQueue} value={goal.varied} required onChange={(varied) => change({ varied })}>
                <Options none="–" words={queues} />
              </Choice>
              <Choice label={texts.its} value={goal.field} onChange={(field) => change({ field })}>
                <Options words={FIELDS.map((field) => [field, texts.fields[field]] as const)} />
              </Choice>
            </div>
          )}
        </>
      )}
    </fieldset>
  );
}
