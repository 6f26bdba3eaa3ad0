/** What the tasks of a job made of the cache of compiled code: hits, bytes, seconds saved. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/overview';
import { ENDED, type CacheUse, type JobCache as Cache, type JobDetail } from '../api/types';
import { bytes } from '../lib/bytes';
import { duration } from '../lib/time';
import { wide } from '../lib/wide';

/** The server is not asked about jobs whose file turns the cache off. */
export function JobCache({ job }: { job: JobDetail }) {
  const share = job.document.spec?.compileCache?.share ?? 'default';
  const { data } = useQuery({ ...ask.cache(job.id, !ENDED.has(job.state)), enabled: share !== 'none' && job.startedAt !== null });
  return data && (data.share !== 'none' || data.uses.length > 0) ? <CacheCard said={data} /> : null;
}

export function CacheCard({ said }: { said: Cache }) {
  return (
    <section aria-label="Compiled code">
      <h2 className="heading">Compiled code</h2>
      <p className="pt-2 text-sm">{sentence(said)}</p>
      {said.source !== 'job' && <p className="pt-1 text-xs text-muted">{origin(said)}</p>}
      {said.uses.length > 0 && (
        <div {...wide} className="overflow-x-auto">
          <table className="mt-2 w-full text-xs">
            <thead>
              <tr className="text-left text-muted">
                <th scope="col">Task</th>
                <th scope="col">Found</th>
                <th scope="col" className="text-right">Compiled anew</th>
                <th scope="col" className="text-right">First step after</th>
                <th scope="col" className="text-right">Saved</th>
              </tr>
            </thead>
            <tbody>
              {said.uses.map((use) => (
                <tr key={use.attempt}>
                  <th scope="row" className="text-left font-normal">{`${use.role}-${use.index}`}</th>
                  <td>{found(use)}</td>
                  <td className="text-right">{files(use.newFiles)}</td>
                  <td className="text-right">{seconds(use.firstStepSeconds)}</td>
                  <td className="text-right">{seconds(use.savedSeconds)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function sentence(said: Cache): string {
  if (said.tasks === 0) return 'No task has asked for compiled code yet.';
  if (said.hits === 0) {
    return said.tasks === 1 ? 'Its task found no compiled code and compiled anew.' : `None of ${said.tasks} tasks found compiled code; all compiled anew.`;
  }
  const tasks = said.tasks === 1 ? 'Its task' : `${said.hits} of ${said.tasks} tasks`;
  const saved = said.savedSeconds === null ? '' : said.savedSeconds > 0 ? `, which saved ${duration(said.savedSeconds)}` : ', which saved no time';
  return `${tasks} started from compiled code, ${bytes(said.bytes)} in all${saved}.`;
}

function origin(said: Cache): string {
  const by = said.source === 'queue' ? `the queue ${said.queue}` : 'the server';
  return `The job file leaves it to ${by}, which says compileCache: ${said.share}.`;
}

function found(use: CacheUse): string {
  if (use.refused) return `refused: ${use.refused}`;
  return use.hit ? `${files(use.files)}, ${bytes(use.bytes)}` : 'nothing';
}

function files(count: number | null): string {
  if (count === null) return '';
  return count === 1 ? '1 file' : `${count.toLocaleString('en')} files`;
}

function seconds(value: number | null): string {
  return value === null ? '' : value < 0 ? `-${duration(-value)}` : duration(value);
}
