/** Where a job keeps its results, and the files of the one that is chosen. */

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import { ofOutput, outputs } from '../api/teams';
import type { JobDetail, OutputView } from '../api/types';
import { files as texts } from '../texts/english/files';
import { filled } from '../texts/fill';
import { FileTable, type Lead } from './FileTable';
import { Empty, Fault, Skeleton } from './Notices';

const route = getRouteApi('/frame/jobs/$ref');

const OUTPUTS = 'outputs: [{path: model, uri: "file:///data/models"}]';
const STORAGES = 'storages: [data]';

export default function JobOutputs({ job }: { job: JobDetail }) {
  const search = route.useSearch();
  const list = useQuery(outputs(job.id));
  if (list.error && !list.data) return <Fault error={list.error} retry={() => void list.refetch()} />;
  if (!list.data) return <Skeleton rows={4} />;
  const found = list.data.items;
  if (found.length === 0)
    return (
      <Empty title={texts.jobNamesPlace}>
        {filled(texts.jobFileKeeps, { code: <code>{OUTPUTS}</code>, code2: <code>{STORAGES}</code> })}
      </Empty>
    );
  const chosen = found.find((each) => String(each.index) === search.output) ?? found.find((each) => each.browsable) ?? found[0]!;
  return (
    <>
      <ul className="flex flex-wrap gap-1 pb-2" aria-label={texts.outputs}>
        {found.map((each) => (
          <li key={each.index} className="min-w-0">
            <Link
              to="/jobs/$ref"
              params={{ ref: job.id }}
              search={{ tab: 'outputs', output: String(each.index) }}
              aria-current={each === chosen ? 'true' : undefined}
              className="inline-flex h-7 max-w-full items-center rounded-[4px] border border-transparent px-2 font-mono text-xs text-muted hover:text-text aria-[current]:border-line-strong aria-[current]:bg-raised aria-[current]:text-text"
            >
              <span className="truncate">{each.path}</span>
            </Link>
          </li>
        ))}
      </ul>
      <Chosen key={chosen.index} job={job} output={chosen} path={search.path ?? ''} file={search.file ?? ''} />
    </>
  );
}

function Chosen({ job, output, path, file }: { job: JobDetail; output: OutputView; path: string; file: string }) {
  const { id } = job;
  const index = String(output.index);
  const lead: Lead = useMemo(
    () =>
      ({ path, file, className, label, children }) => (
        <Link to="/jobs/$ref" params={{ ref: id }} search={{ tab: 'outputs', output: index, path: path || undefined, file }} className={className} aria-label={label}>
          {children}
        </Link>
      ),
    [id, index],
  );
  return (
    <>
      <p className="text-sm break-words text-muted">
        {output.uri && <span className="font-mono text-xs">{output.uri}</span>}
        {output.storage && (
          <>
            {output.uri && ', '}{filled(texts.inTheStorage, { storage: <Link to="/storages/$name" params={{ name: output.storage }} className="link">
              {output.storage}
            </Link> })}
          </>
        )}
      </p>
      {output.browsable ? (
        <FileTable key={path} place={ofOutput(id, output.index)} name={output.path} path={path} file={file} Lead={lead}>
          {texts.jobHasKept}
        </FileTable>
      ) : (
        <Empty title={texts.filesShownHere}>{output.message}</Empty>
      )}
    </>
  );
}
