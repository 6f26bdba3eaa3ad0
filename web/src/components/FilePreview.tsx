/** The beginning of a file: its text, some rows of its table, or the picture that it is. */

import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { request } from '../api/client';
import { pictureAddress, picturePath, preview } from '../api/teams';
import type { FilePreview as Preview } from '../api/types';
import { lastName, size } from '../lib/files';
import { files as texts } from '../texts/english/files';
import { fill } from '../texts/fill';
import { FetchLink } from './FetchLink';
import { Fault, Skeleton } from './Notices';

interface Props {
  place: string;
  path: string;
  /** Leads back to the folder alone. */
  close: ReactNode;
}

export function FilePreview({ place, path, close }: Props) {
  const { data, error, refetch } = useQuery(preview(place, path));
  const [refused, setRefused] = useState<unknown>(null);
  const name = lastName(path);
  return (
    <section aria-label={fill(texts.previewOf, { name })} className="mb-4 rounded border border-line-strong bg-raised p-3">
      <div className="flex flex-wrap items-baseline gap-x-3 gap-y-1 pb-2">
        <h2 className="min-w-0 truncate font-mono text-sm font-semibold">{name}</h2>
        {data && <span className="text-xs text-muted">{size(data.size)}</span>}
        <span className="grow" />
        {data && (
          <FetchLink place={place} path={path} bytes={data.size} className="link text-sm" onRefused={setRefused}>
            {texts.fetch}
          </FetchLink>
        )}
        <span className="link text-sm">{close}</span>
      </div>
      {refused !== null && <Fault error={refused} />}
      {error && <Fault error={error} retry={() => void refetch()} />}
      {!data && !error && <Skeleton rows={4} />}
      {data && <Shown place={place} path={path} found={data} onRefused={setRefused} />}
      {data?.cut && <p className="pt-2 text-xs text-muted">{texts.partFileFetch}</p>}
    </section>
  );
}

function Shown({ place, path, found, onRefused }: { place: string; path: string; found: Preview; onRefused: (error: unknown) => void }) {
  if (found.kind === 'picture') return <Picture place={place} path={path} onRefused={onRefused} />;
  if (found.kind === 'table') return <Rows columns={found.columns} rows={found.rows} name={lastName(path)} />;
  if (found.kind === 'other') return <p className="text-sm text-muted">{texts.fileNeitherText}</p>;
  if (found.size === 0) return <p className="text-sm text-muted">{texts.fileEmpty}</p>;
  return (
    <pre tabIndex={0} aria-label={fill(texts.textOf, { path: lastName(path) })} className="max-h-[60dvh] overflow-auto font-mono text-xs whitespace-pre">
      {found.text}
    </pre>
  );
}

/** A browser says nothing of why it shows no picture; the server is asked for its sentence. */
function Picture({ place, path, onRefused }: { place: string; path: string; onRefused: (error: unknown) => void }) {
  const [broken, setBroken] = useState(false);
  const explain = async () => {
    setBroken(true);
    try {
      await request(picturePath(place), { query: { path } });
      onRefused(new Error(texts.browserCannotRead));
    } catch (error) {
      onRefused(error);
    }
  };
  if (broken) return null;
  return <img src={pictureAddress(place, path)} alt={fill(texts.thePicture, { path: lastName(path) })} className="max-h-[60dvh] max-w-full" onError={() => void explain()} />;
}

function Rows({ columns, rows, name }: { columns: readonly string[]; rows: readonly (readonly string[])[]; name: string }) {
  return (
    <div tabIndex={0} role="region" aria-label={fill(texts.rowsOf, { name })} className="max-h-[60dvh] overflow-auto">
      <table className="grid-table">
        <thead>
          <tr>
            {columns.map((column, at) => (
              <th key={at}>{column}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at} data-row={at}>
              {columns.map((_, cell) => (
                <td key={cell} className="whitespace-nowrap">
                  {row[cell] ?? ''}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
