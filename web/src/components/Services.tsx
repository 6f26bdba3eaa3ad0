/** The services of a running job, each opened in a tab of its own. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import * as ask from '../api/queries';
import { ENDED, type JobDetail } from '../api/types';
import { job as texts } from '../texts/english/job';
import { counted, fill } from '../texts/fill';
import { Fault } from './Notices';
import { TensorBoardButton } from './TensorBoardButton';

/** Services beyond these are named by `corral open`. */
const SHOWN = 24;

/** Whether the job file declares a port, so that there is something to ask for. */
export function mayServe(job: JobDetail): boolean {
  const declared = job.jobType === 'notebook' || job.document.spec.roles.some((role) => role.ports.length > 0);
  return declared && !ENDED.has(job.state) && job.tasks.running > 0 && job.allowed.includes('open');
}

/** Whether TensorBoard may find something: a task runs, or the job names where its outputs are kept. */
export function mayBeShown(job: JobDetail): boolean {
  const { spec, metadata } = job.document;
  if (metadata.name.startsWith('tensorboard-') || job.jobType === 'notebook' || !job.allowed.includes('open')) return false;
  return job.tasks.running > 0 || spec.outputs.length > 0;
}

export function Services({ job }: { job: JobDetail }) {
  const { data, error, refetch } = useQuery({ ...ask.services(job.id), enabled: mayServe(job) });
  if (error && !data) return <Fault error={error} retry={() => void refetch()} />;
  const items = data?.items ?? [];
  if (items.length === 0 && !mayBeShown(job)) return null;
  const several = new Set(items.map((each) => each.task)).size > 1;
  return (
    <section aria-label={texts.services}>
      <h2 className="heading">{texts.services}</h2>
      <ul className="flex flex-wrap gap-2 pt-2">
        {items.slice(0, SHOWN).map((each) => (
          <li key={`${each.task} ${each.name}`}>
            <Link
              to="/jobs/$ref/open/$task/$port"
              params={{ ref: job.id, task: each.task, port: each.name }}
              target="_blank"
              rel="noopener"
              className="btn"
            >
              {fill(texts.open, { name: each.name })}
              {several && <span className="text-muted"> {fill(texts.ofTask, { task: each.task })}</span>}
              <span className="sr-only"> {texts.newTab}</span>
            </Link>
          </li>
        ))}
        {mayBeShown(job) && (
          <li>
            <TensorBoardButton jobs={[job]} />
          </li>
        )}
      </ul>
      {items.length > SHOWN && (
        <p className="pt-2 text-xs text-muted">{counted(texts.firstCorralOpen, items.length, { shown: SHOWN })}</p>
      )}
    </section>
  );
}
