/** A folder: the way to it, what is in it by name, each file as a preview and as a download. */

import { useInfiniteQuery } from '@tanstack/react-query';
import { useState, type ComponentType, type ReactNode } from 'react';
import { files } from '../api/teams';
import type { FileView } from '../api/types';
import { crumbs, inside, parent, size } from '../lib/files';
import { files as texts } from '../texts/english/files';
import { fill } from '../texts/fill';
import { FetchLink } from './FetchLink';
import { FilePreview } from './FilePreview';
import { Empty, Fault, Skeleton } from './Notices';
import { Ago } from './Time';

/** Leads to a folder, or to a file in it that is then shown; each page has addresses of its own for them. */
export type Lead = ComponentType<{ path: string; file?: string; className?: string; label?: string; children: ReactNode }>;

interface Props {
  /** The API path of the folder's storage or output. */
  place: string;
  /** What the outermost folder is called. */
  name: string;
  path: string;
  /** The file that is shown. */
  file: string;
  Lead: Lead;
  /** Says what a folder is for that is empty. */
  children: ReactNode;
}

export function FileTable({ place, name, path, file, Lead, children }: Props) {
  const list = useInfiniteQuery(files(place, path));
  const [refused, setRefused] = useState<unknown>(null);
  const found = list.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <>
      <Way name={name} path={path} Lead={Lead} />
      {file && <FilePreview key={file} place={place} path={file} close={<Lead path={parent(file)}>{texts.close}</Lead>} />}
      {refused !== null && <Fault error={refused} />}
      {list.error && !list.data && <Fault error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && !list.error && <Skeleton rows={6} />}
      {list.data && found.length === 0 && <Empty title={texts.nothingFolder}>{children}</Empty>}
      {found.length > 0 && (
        <table className="grid-table" aria-label={texts.files}>
          <thead>
            <tr>
              <th>{texts.name}</th>
              <th className="num">{texts.size}</th>
              <th className="w-24 max-sm:hidden">{texts.changed}</th>
              <th className="w-12">
                <span className="sr-only">{texts.preview}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {found.map((each) => (
              <tr key={each.name} data-file={each.name} className="hover:bg-sunken">
                <td className="max-w-0 truncate">
                  <Named place={place} path={inside(path, each.name)} file={each} Lead={Lead} onRefused={setRefused} />
                </td>
                <td className="num w-24 text-muted">{each.kind === 'file' ? size(each.size) : ''}</td>
                <td className="text-muted max-sm:hidden">
                  <Ago at={each.changedAt} />
                </td>
                <td>
                  {each.kind === 'file' && (
                    <Lead path={path} file={inside(path, each.name)} className="link" label={fill(texts.show, { name: each.name })}>
                      {texts.showRow}
                    </Lead>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {list.hasNextPage && (
        <p className="pt-3">
          <button type="button" className="btn" disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            {list.isFetchingNextPage ? texts.loading : texts.showMore}
          </button>
        </p>
      )}
    </>
  );
}

function Way({ name, path, Lead }: { name: string; path: string; Lead: Lead }) {
  const way = [{ name, path: '' }, ...crumbs(path)];
  return (
    <nav aria-label={texts.folder} className="py-2">
      <ol className="flex flex-wrap items-center gap-x-1.5 font-mono text-xs">
        {way.map((each, at) => (
          <li key={each.path} className="flex max-w-full min-w-0 items-center gap-x-1.5">
            {at > 0 && (
              <span aria-hidden className="text-faint">
                /
              </span>
            )}
            {at === way.length - 1 ? (
              <span aria-current="page" className="truncate font-semibold">
                {each.name}
              </span>
            ) : (
              <Lead path={each.path} className="link truncate">
                {each.name}
              </Lead>
            )}
          </li>
        ))}
      </ol>
    </nav>
  );
}

interface NamedProps {
  place: string;
  path: string;
  file: FileView;
  Lead: Lead;
  onRefused: (error: unknown) => void;
}

function Named({ place, path, file, Lead, onRefused }: NamedProps) {
  if (file.kind === 'folder')
    return (
      <Lead path={path} className="font-medium hover:underline">
        <span aria-hidden className="pr-2 text-muted">
          ▸
        </span>
        {file.name}/
      </Lead>
    );
  if (file.kind !== 'file')
    return (
      <span className="pl-5 text-muted" title={file.kind === 'link' ? texts.linksFollowedHere : undefined}>
        {file.name} <span className="text-xs">({file.kind === 'link' ? texts.linkNotFollowed : texts.neitherFileNor})</span>
      </span>
    );
  return (
    <FetchLink place={place} path={path} bytes={file.size} className="link ml-5" onRefused={onRefused}>
      {file.name}
    </FetchLink>
  );
}
