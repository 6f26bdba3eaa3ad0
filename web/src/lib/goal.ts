/** The goal of a what-if question: what is to hold, and what is raised until it does. */

export interface Goal {
  /** Such as `wait.p95`; empty: no goal. */
  metric: string;
  /** Of one queue, or of all. */
  queue: string;
  comparison: string;
  /** As the language of assertions has it: `1h`, `80%`, `0.9 * base`. */
  value: string;
  /** `nodes` are added, or a `queue` gets more. */
  vary: string;
  node: string;
  varied: string;
  field: string;
}

export const NO_GOAL: Goal = { metric: '', queue: '', comparison: '<=', value: '', vary: 'nodes', node: '', varied: '', field: 'deserved' };

/** The metrics of goals, each with the name of its text. */
export const METRICS = [
  ['wait.p95', 'waitP95'],
  ['wait.median', 'waitMedian'],
  ['wait.mean', 'waitMean'],
  ['wait.max', 'waitMax'],
  ['utilisation', 'utilisation'],
  ['preemptions', 'preemptions'],
] as const;

export const FIELDS = ['deserved', 'guaranteed', 'limit'] as const;

const USUAL: Record<string, Pick<Goal, 'comparison' | 'value'>> = {
  wait: { comparison: '<=', value: '1h' },
  utilisation: { comparison: '>=', value: '80%' },
  preemptions: { comparison: '<=', value: '0' },
};

const kindOf = (metric: string) => metric.split('.')[0]!;

/** The goal with another metric; a value of another unit would be refused, so the usual one takes its place. */
export function withMetric(goal: Goal, metric: string): Goal {
  if (kindOf(metric) === kindOf(goal.metric)) return { ...goal, metric };
  return { ...goal, metric, ...USUAL[kindOf(metric)] };
}

/** `wait.p95(queue=research) <= 1h`; empty without a goal. */
export function goalText({ metric, queue, comparison, value }: Goal): string {
  if (!metric || !value.trim()) return '';
  const name = /^[\w.-]+$/.test(queue) ? queue : `"${queue}"`;
  return `${metric}${queue && `(queue=${name})`} ${comparison} ${value.trim()}`;
}

/** `nodes-like=local/node1` or `queue=research:deserved.devices`; empty without a goal. */
export function varyText(goal: Goal): string {
  if (!goalText(goal)) return '';
  if (goal.vary === 'nodes') return goal.node && `nodes-like=${goal.node}`;
  return goal.varied && `queue=${goal.varied}:${goal.field}.devices`;
}
