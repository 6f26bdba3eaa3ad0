/** A job's log with selectors of task and attempt; what is chosen and searched is in the address. */

import { getRouteApi } from '@tanstack/react-router';
import type { Attempt, JobDetail } from '../api/types';
import { job as texts } from '../texts/english/job';
import { fill } from '../texts/fill';
import { LogView } from './LogView';
import { numberOf, useAttempts } from './useAttempts';

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
  const attempts = useAttempts(job.id, task).data?.items ?? [];
  const attempt = (task && search.attempt) || '';
  const set = (change: { task?: string; attempt?: string; find?: string }) => void navigate({ search: (now) => ({ ...now, ...change }), replace: true });
  const selector = (
    <>
      {names.length > 1 && <TaskChoice {...{ names, task, together }} onChange={(next) => set({ task: next, attempt: undefined })} />}
      {(attempts.length > 1 || attempt) && (
        <AttemptChoice attempts={attempts} attempt={attempt} onChange={(next) => set({ attempt: next })} />
      )}
    </>
  );
  return (
    <LogView
      jobId={job.id}
      jobName={job.name}
      task={task}
      attempt={attempt}
      generation={job.attempt}
      find={search.find ?? ''}
      onFind={(find) => set({ find: find || undefined })}
      selector={selector}
      height={height}
    />
  );
}

interface TaskProps {
  names: string[];
  task: string;
  together: boolean;
  onChange: (task: string | undefined) => void;
}

function TaskChoice({ names, task, together, onChange }: TaskProps) {
  return (
    <select aria-label={texts.task} className="field !h-7 !w-auto" value={task} onChange={(event) => onChange(event.target.value || undefined)}>
      {together && <option value="">{texts.allTasks}</option>}
      {task && !names.includes(task) && <option>{task}</option>}
      {names.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

interface AttemptProps {
  attempts: Attempt[];
  attempt: string;
  onChange: (attempt: string | undefined) => void;
}

function AttemptChoice({ attempts, attempt, onChange }: AttemptProps) {
  const numbers = attempts.map(numberOf);
  return (
    <select aria-label={texts.attempt} className="field !h-7 !w-auto" value={attempt} onChange={(event) => onChange(event.target.value || undefined)}>
      <option value="">{texts.allAttempts}</option>
      {attempt && !numbers.includes(attempt) && <option value={attempt}>{fill(texts.attemptRow, { attempt })}</option>}
      {attempts.map((each, at) => (
        <option key={each.id} value={numbers[at]}>
          {fill(each.exit ? texts.attemptExit : each.endedAt ? texts.attemptOver : texts.attemptRow, { attempt: numbers[at]!, exit: each.exit?.phrase ?? '' })}
        </option>
      ))}
    </select>
  );
}
