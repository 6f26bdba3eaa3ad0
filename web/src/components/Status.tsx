/** A state as shape, word and colour; the shape alone tells the seven states apart. */

import { shared } from '../texts/english/shared';
import { textOf } from '../texts/fill';

type Tone = 'accent' | 'fail' | 'wait' | 'muted';

const TONES: Record<string, Tone> = {
  waiting: 'wait',
  starting: 'accent',
  running: 'accent',
  stopping: 'muted',
  succeeded: 'muted',
  failed: 'fail',
  stopped: 'muted',
};
const COLOURS: Record<Tone, string> = {
  accent: 'text-accent',
  fail: 'text-fail',
  wait: 'text-wait',
  muted: 'text-muted',
};

/** The launcher's task states, in the words of job states. */
const TASK_WORDS: Record<string, string> = {
  'creation-pending': 'waiting',
  'creation-requested': 'waiting',
  preparing: 'starting',
  'deletion-pending': 'stopping',
  deleting: 'stopping',
  'attempt-completed': 'waiting',
};

type Exit = { class: string; code: number };

/** The codes of tasks that were asked to end: by a person, by the end of their job, or by a smaller role. */
const ASKED_TO_END = new Set([-210, -220, -230]);

/** Whether an end was asked for, by a person or by the job's own rules, and is no fault of the program's. */
const stopped = (exit: Exit) => exit.class === 'stopped' || ASKED_TO_END.has(exit.code);

/** The colour of an exit's words: red is for those that somebody should look at. */
export const exitTone = (exit: Exit | null) => (exit && exit.code !== 0 && !stopped(exit) ? 'text-fail' : 'text-muted');

/** One of the seven words for a task: a completed one succeeded, failed or was stopped, as its exit says. */
export function taskWord(task: { state: string; exit: Exit | null }): string {
  if (task.state !== 'completed') return TASK_WORDS[task.state] ?? task.state;
  if (!task.exit || task.exit.class === 'succeeded') return 'succeeded';
  return stopped(task.exit) ? 'stopped' : 'failed';
}

export function Glyph({ state, size = 12 }: { state: string; size?: number }) {
  const tone = COLOURS[TONES[state] ?? 'muted'];
  return (
    <svg viewBox="0 0 12 12" width={size} height={size} aria-hidden className={`inline-block shrink-0 ${tone}`}>
      <Shape state={state} />
    </svg>
  );
}

function Shape({ state }: { state: string }) {
  const line = { fill: 'none', stroke: 'currentColor', strokeWidth: 1.6 } as const;
  switch (state) {
    case 'waiting':
      return <circle cx="6" cy="6" r="4.2" {...line} strokeDasharray="2.2 2.2" />;
    case 'starting':
      return (
        <>
          <circle cx="6" cy="6" r="4.2" {...line} />
          <path d="M6 1.8a4.2 4.2 0 0 1 0 8.4z" fill="currentColor" />
        </>
      );
    case 'running':
      return <path d="M2.6 1.2 10.6 6l-8 4.8z" fill="currentColor" />;
    case 'stopping':
      return <rect x="2.2" y="2.2" width="7.6" height="7.6" {...line} strokeDasharray="2.5 1.6" />;
    case 'succeeded':
      return <path d="m1.6 6.4 3 3 5.8-6.6" {...line} strokeWidth={2} />;
    case 'failed':
      return <path d="m2.2 2.2 7.6 7.6m0-7.6-7.6 7.6" {...line} strokeWidth={2.2} />;
    default:
      return <rect x="2" y="2" width="8" height="8" fill="currentColor" />;
  }
}

export function Status({ state, word = state }: { state: string; word?: string }) {
  const tone = COLOURS[TONES[state] ?? 'muted'];
  return (
    <span className={`flex items-center gap-1.5 whitespace-nowrap ${tone}`} data-state={state}>
      <Glyph state={state} />
      {textOf(shared.states, word)}
    </span>
  );
}
