/** Adds and removes tags of the chosen jobs, one job after the other. */

import { useState } from 'react';
import { call, part } from '../api/client';
import type { JobSummary } from '../api/types';
import { tagLine } from '../lib/cli';
import { ownTags, readTags } from '../lib/joblist';
import { counts } from '../texts/english/counts';
import { list as texts } from '../texts/english/list';
import { counted, fill } from '../texts/fill';
import { FormDialog, TextField, Tick } from './FormDialog';
import { Names, Refusals } from './ManyJobs';
import { useEach } from './useEach';

export function TagMany({ jobs, onClose, onDone }: { jobs: readonly JobSummary[]; onClose: () => void; onDone: () => void }) {
  const [text, setText] = useState('');
  const [removed, setRemoved] = useState<ReadonlySet<string>>(new Set());
  const add = readTags(text);
  const known = ownTags(jobs);
  const remove = known.filter((tag) => removed.has(tag) && !add.includes(tag));
  const each = useEach(jobs, (job) => call(`/jobs/${part(job.id)}/tags`, { method: 'POST', json: { add, remove } }), onDone);
  const toggle = (tag: string) => {
    const next = new Set(removed);
    if (!next.delete(tag)) next.add(tag);
    setRemoved(next);
  };
  const many = counted(counts.jobs, jobs.length);
  return (
    <FormDialog
      title={fill(texts.tags, { which: jobs.length === 1 ? jobs[0]!.name : many })}
      word={texts.changeTags}
      pending={each.pending}
      ready={add.length + remove.length > 0}
      error={null}
      line={tagLine(jobs, add, remove)}
      onSubmit={each.go}
      onClose={each.refused.length > 0 ? onDone : onClose}
    >
      {jobs.length > 1 && <Names jobs={jobs} label={texts.jobsWhoseTags} />}
      <TextField label={texts.tagsAddComma} value={text} onChange={setText} first max={2000} />
      {known.length > 0 && (
        <fieldset className="mt-4 max-h-48 overflow-y-auto text-sm">
          <legend className="label pb-1">{texts.tagsRemove}</legend>
          {known.map((tag) => (
            <Tick key={tag} checked={removed.has(tag)} onChange={() => toggle(tag)}>
              {tag}
            </Tick>
          ))}
        </fieldset>
      )}
      {each.pending && (
        <p role="status" className="pt-3 text-sm">
          {fill(texts.changed, { asked: each.asked, many })}
        </p>
      )}
      <div className="pt-3">
        <Refusals refused={each.refused} />
      </div>
    </FormDialog>
  );
}
