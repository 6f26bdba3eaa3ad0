import { expect, it } from 'vitest';
import type { JobDetail, Task } from '../api/types';
import { tasksCsv, tasksOf } from './tasklist';

const TASK = { role: 'worker', index: 1, state: 'completed', attempt: 2, node: 'local/node1', devices: [0, 3], startedAt: '2026-11-28T12:00:00Z', endedAt: null, retries: 1, exit: null } as unknown as Task;

it('writes a line for each task, with its rank where it has one', () => {
  const failed = { ...TASK, index: 0, exit: { code: 3, phrase: 'Failed', message: '=cmd, "x"' } } as unknown as Task;
  const placement = [{ role: 'worker', index: 1, rank: 7 }] as JobDetail['placement'];
  expect(tasksCsv([failed, TASK], placement, (task) => (task.exit ? 'failed' : 'succeeded')).split('\n')).toEqual([
    'role,index,state,rank,attempt,node,devices,started,ended,retries,exit_code,exit,exit_message',
    `worker,0,failed,,2,local/node1,0 3,2026-11-28T12:00:00Z,,1,3,Failed,"'=cmd, ""x"""`,
    'worker,1,succeeded,7,2,local/node1,0 3,2026-11-28T12:00:00Z,,1,,,',
    '',
  ]);
});

it('finds tasks by their exit code and a part of their node, together with their state', () => {
  const at = (index: number, node: string, code: number | null) => ({ ...TASK, index, node, exit: code === null ? null : { code } }) as unknown as Task;
  const tasks = [at(0, 'local/node1', 0), at(1, 'local/node2', 137), at(2, 'local/NODE2', null), at(3, 'local/node2', 1)];
  const found = (state: string, exit: string, node: string) =>
    tasksOf(tasks, { state, exit, node }, (task) => (task.exit ? 'ended' : 'running')).map((task) => task.index);
  expect(found('', '137', '')).toEqual([1]);
  expect(found('', '!0', '')).toEqual([1, 3]);
  expect(found('', '0', '')).toEqual([0]);
  expect(found('', '', 'node2')).toEqual([1, 2, 3]);
  expect(found('ended', '', 'Node2')).toEqual([1, 3]);
  expect(found('', 'x', '')).toEqual([]);
});
