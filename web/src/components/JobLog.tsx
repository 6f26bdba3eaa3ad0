/** A job's log with its task selector; what is chosen and searched is in the address. */

import { getRouteApi } from '@tanstack/react-router';
import type { JobDetail } from '../api/types';
import { LogView } from './LogView';

const route = getRouteApi('/frame/jobs/$ref');
const LISTED = 500;
/** The logs of more tasks than this are read one by one: all together they are nothing that a person follows. */
const TOGETHER = 64;

/** The names of a job's tasks, as far as a selector can list them. */
export function taskNames(job: JobDetail): string[] {
  const names: string[] = [];
  for (const role of job.roles)
    for (let index = 0; index < role.target && names.length < LISTED; index += 1) names.push(`${role.name}-${index}`);
  return names;
}

export function JobLog({ job, height }: { job: JobDetail; height: string }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const names = taskNames(job);
  const together = names.length > 1 && names.length <= TOGETHER;
  const only = together ? '' : (names[0] ?? '');
  const task = search.task ?? only;
  const set = (change: { task?: string; find?: string }) => void navigate({ search: { ...search, ...change }, replace: true });
  const selector = names.length > 1 && (
    <select aria-label="Task" className="field !h-7 !w-auto" value={task} onChange={(event) => set({ task: event.target.value || undefined })}>
      {together && <option value="">all tasks</option>}
      {task && !names.includes(task) && <option>{task}</option>}
      {names.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
  return (
    <LogView
      jobId={job.id}
      jobName={job.name}
      task={task}
      generation={job.attempt}
      find={search.find ?? ''}
      onFind={(find) => set({ find: find || undefined })}
      selector={selector}
      height={height}
    />
  );
}
