/** A folder of a storage: the way to it, what is in it by name, and each file as a download. */

import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { request } from '../api/client';
import { fileAddress, filePath, files } from '../api/teams';
import type { FileView } from '../api/types';
import { hand } from '../lib/download';
import { crumbs, inside, size } from '../lib/files';
import { Empty, Fault, Skeleton } from './Notices';
import { Ago } from './Time';

/** Up to this many bytes a file is fetched by the page, so that a refusal is a sentence; the browser fetches larger ones by itself. */
const HELD = 32 * 2 ** 20;

export function FileTable({ storage, path }: { storage: string; path: string }) {
  const list = useInfiniteQuery(files(storage, path));
  const [refused, setRefused] = useState<unknown>(null);
  const found = list.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <>
      <Way storage={storage} path={path} />
      {refused !== null && <Fault error={refused} />}
      {list.error && !list.data && <Fault error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && !list.error && <Skeleton rows={6} />}
      {list.data && found.length === 0 && <Empty title="Nothing is in this folder" />}
      {found.length > 0 && (
        <table className="grid-table" aria-label="Files">
          <thead>
            <tr>
              <th>Name</th>
              <th className="num">Size</th>
              <th className="w-28">Changed</th>
            </tr>
          </thead>
          <tbody>
            {found.map((file) => (
              <tr key={file.name} data-file={file.name} className="hover:bg-sunken">
                <td className="max-w-0 truncate">
                  <Named storage={storage} path={path} file={file} onRefused={setRefused} />
                </td>
                <td className="num w-24 text-muted">{file.kind === 'file' ? size(file.size) : ''}</td>
                <td className="text-muted">
                  <Ago at={file.changedAt} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {list.hasNextPage && (
        <p className="pt-3">
          <button type="button" className="btn" disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            {list.isFetchingNextPage ? 'Loading' : 'Show more'}
          </button>
        </p>
      )}
    </>
  );
}

function Way({ storage, path }: { storage: string; path: string }) {
  const way = [{ name: storage, path: '' }, ...crumbs(path)];
  return (
    <nav aria-label="Folder" className="py-2">
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
              <Link to="/storages/$name" params={{ name: storage }} search={{ path: each.path || undefined }} className="link truncate">
                {each.name}
              </Link>
            )}
          </li>
        ))}
      </ol>
    </nav>
  );
}

interface NamedProps {
  storage: string;
  path: string;
  file: FileView;
  onRefused: (error: unknown) => void;
}

function Named({ storage, path, file, onRefused }: NamedProps) {
  const at = inside(path, file.name);
  if (file.kind === 'folder')
    return (
      <Link to="/storages/$name" params={{ name: storage }} search={{ path: at }} className="font-medium hover:underline">
        <span aria-hidden className="pr-2 text-muted">
          ▸
        </span>
        {file.name}/
      </Link>
    );
  if (file.kind !== 'file')
    return (
      <span className="pl-5 text-muted" title={file.kind === 'link' ? 'Links are not followed here' : undefined}>
        {file.name} <span className="text-xs">({file.kind === 'link' ? 'link, not followed' : 'neither file nor folder'})</span>
      </span>
    );
  const take = async (event: React.MouseEvent) => {
    onRefused(null);
    if (file.size > HELD) return;
    event.preventDefault();
    try {
      const answer = await request(filePath(storage), { query: { path: at } });
      hand(await answer.blob(), file.name);
    } catch (error) {
      onRefused(error);
    }
  };
  return (
    <a href={fileAddress(storage, at)} download={file.name} onClick={(event) => void take(event)} className="link ml-5" title={`Fetch ${file.name}`}>
      {file.name}
    </a>
  );
}
