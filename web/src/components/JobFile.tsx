/** What a job was submitted as, and the canonical document that it became. */

import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { shownText } from '../api/copy';
import * as ask from '../api/queries';
import type { JobDetail } from '../api/types';
import { job as texts } from '../texts/english/job';
import { fill } from '../texts/fill';
import { Skeleton } from './Notices';

const FORMS = ['submitted', 'canonical'] as const;

export function JobFile({ job }: { job: JobDetail }) {
  const may = job.allowed.includes('environment');
  const { data: file, isPending } = useQuery({ ...ask.jobFile(job.id), enabled: may });
  const [wanted, setWanted] = useState<(typeof FORMS)[number]>('submitted');
  if (may && isPending) return <Skeleton rows={10} />;
  const shown = file ? wanted : 'canonical';
  const parameters = Object.entries(file?.parameters ?? {});
  return (
    <>
      {file && (
        <div role="group" aria-label={texts.formDocument} className="flex flex-wrap items-baseline gap-2 pb-3">
          {FORMS.map((each) => (
            <button key={each} type="button" aria-pressed={shown === each} className="btn aria-pressed:border-accent aria-pressed:text-accent" onClick={() => setWanted(each)}>
              {texts.forms[each]}
            </button>
          ))}
          {shown === 'submitted' && parameters.length > 0 && (
            <code className="font-mono text-xs break-all text-muted">{parameters.map(([name, value]) => `--set ${name}=${value}`).join(' ')}</code>
          )}
        </div>
      )}
      {file && shown === 'submitted' && file.edits.length > 0 && (
        <p className="pb-3 text-sm text-muted">{fill(texts.jobWasEdited, { edits: file.edits.join(' ') })}</p>
      )}
      <pre
        className="overflow-x-auto bg-sunken p-4 font-mono text-xs leading-[18px]"
        tabIndex={0}
        aria-label={shown === 'submitted' ? texts.fileSubmitted : texts.theCanonicalDocument}
      >
        {file && shown === 'submitted' ? shownText(file.text) : JSON.stringify(job.document, null, 2)}
      </pre>
    </>
  );
}
