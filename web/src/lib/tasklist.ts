/** The file of a job's tasks for a spreadsheet. */

import type { JobDetail, Task } from '../api/types';
import { csv } from './usage';

/** Which tasks of a job are wanted; an empty field wants all. */
export interface TaskFilter {
  state: string;
  /** An exit code, or `!0` for every one but 0. */
  exit: string;
  /** A part of the node's name. */
  node: string;
}

export const filtersTasks = ({ state, exit, node }: TaskFilter) => state !== '' || exit !== '' || node !== '';

/** The tasks that a filter wants; a task that has not ended has no exit code. */
export function tasksOf(tasks: readonly Task[], { state, exit, node }: TaskFilter, wordOf: (task: Task) => string): Task[] {
  const code = exit.trim();
  const part = node.trim().toLowerCase();
  return tasks.filter(
    (task) =>
      (!state || wordOf(task) === state) &&
      (!code || (task.exit !== null && (code === '!0' ? task.exit.code !== 0 : String(task.exit.code) === code))) &&
      (!part || task.node.toLowerCase().includes(part)),
  );
}

const HEAD = ['role', 'index', 'state', 'rank', 'attempt', 'node', 'devices', 'started', 'ended', 'retries', 'exit_code', 'exit', 'exit_message'];

/** Tasks as CSV: one line each, times as the API gives them; `wordOf` says the state that the page shows. */
export function tasksCsv(tasks: readonly Task[], placement: JobDetail['placement'], wordOf: (task: Task) => string): string {
  const ranks = new Map(placement.map((each) => [`${each.role}-${each.index}`, each.rank]));
  const rows = tasks.map((task) => [
    task.role, task.index, wordOf(task), ranks.get(`${task.role}-${task.index}`) ?? null, task.attempt, task.node, task.devices.join(' '), task.startedAt, task.endedAt,
    task.retries, task.exit?.code ?? null, task.exit?.phrase ?? '', task.exit?.message ?? '',
  ]);
  return csv([HEAD, ...rows]);
}
