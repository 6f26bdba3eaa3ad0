/** What the tasks of a job made of the cache of compiled code: hits, bytes, seconds saved. */

import { useQuery } from '@tanstack/react-query';
import * as ask from '../api/overview';
import { ENDED, type CacheUse, type JobCache as Cache, type JobDetail } from '../api/types';
import { bytes } from '../lib/bytes';
import { duration } from '../lib/time';
import { wide } from '../lib/wide';
import { counts } from '../texts/english/counts';
import { job as texts } from '../texts/english/job';
import { counted, fill, number } from '../texts/fill';

/** The server is not asked about jobs whose file turns the cache off. */
export function JobCache({ job }: { job: JobDetail }) {
  const share = job.document.spec?.compileCache?.share ?? 'default';
  const { data } = useQuery({ ...ask.cache(job.id, !ENDED.has(job.state)), enabled: share !== 'none' && job.startedAt !== null });
  return data && (data.share !== 'none' || data.uses.length > 0) ? <CacheCard said={data} /> : null;
}

export function CacheCard({ said }: { said: Cache }) {
  return (
    <section aria-label={texts.compiledCode}>
      <h2 className="heading">{texts.compiledCode}</h2>
      <p className="pt-2 text-sm">{sentence(said)}</p>
      {said.source !== 'job' && <p className="pt-1 text-xs text-muted">{origin(said)}</p>}
      {said.uses.length > 0 && (
        <div {...wide} className="overflow-x-auto">
          <table className="mt-2 w-full text-xs">
            <thead>
              <tr className="text-left text-muted">
                <th scope="col">{texts.task}</th>
                <th scope="col">{texts.found}</th>
                <th scope="col" className="text-right">{texts.compiledAnew}</th>
                <th scope="col" className="text-right">{texts.firstStepAfter}</th>
                <th scope="col" className="text-right">{texts.saved}</th>
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
  if (said.tasks === 0) return texts.taskHasAsked;
  if (said.hits === 0) {
    return said.tasks === 1 ? texts.taskFoundCompiled : counted(texts.noneTasksFound, said.tasks);
  }
  const [plain, saved, nothing] =
    said.tasks === 1
      ? [texts.oneStarted, texts.oneStartedSaved, texts.oneStartedNothing]
      : [texts.someStarted, texts.someStartedSaved, texts.someStartedNothing];
  const text = said.savedSeconds === null ? plain : said.savedSeconds > 0 ? saved : nothing;
  const values = { hits: number(said.hits), bytes: bytes(said.bytes), time: duration(said.savedSeconds ?? 0) };
  return typeof text === 'string' ? fill(text, values) : counted(text, said.tasks, values);
}

function origin(said: Cache): string {
  return fill(said.source === 'queue' ? texts.leftToQueue : texts.leftToServer, { queue: said.queue, share: said.share });
}

function found(use: CacheUse): string {
  if (use.refused) return fill(texts.refused, { why: use.refused });
  return use.hit ? fill(texts.filesOf, { files: files(use.files), bytes: bytes(use.bytes) }) : texts.nothing;
}

function files(count: number | null): string {
  return count === null ? '' : counted(counts.files, count);
}

function seconds(value: number | null): string {
  return value === null ? '' : value < 0 ? `-${duration(-value)}` : duration(value);
}
