/** A link that downloads a file of a storage or of an output. */

import type { ReactNode } from 'react';
import { request } from '../api/client';
import { fileAddress, filePath } from '../api/teams';
import { hand } from '../lib/download';
import { lastName } from '../lib/files';
import { files as texts } from '../texts/english/files';
import { fill } from '../texts/fill';

/** Up to this many bytes a file is fetched by the page, so that a refusal is a sentence; the browser fetches larger ones by itself. */
const HELD = 32 * 2 ** 20;

interface Props {
  place: string;
  path: string;
  bytes: number;
  className: string;
  onRefused: (error: unknown) => void;
  children: ReactNode;
}

export function FetchLink({ place, path, bytes, className, onRefused, children }: Props) {
  const name = lastName(path);
  const take = async (event: React.MouseEvent) => {
    onRefused(null);
    if (bytes > HELD) return;
    event.preventDefault();
    try {
      const answer = await request(filePath(place), { query: { path } });
      hand(await answer.blob(), name);
    } catch (error) {
      onRefused(error);
    }
  };
  return (
    <a href={fileAddress(place, path)} download={name} onClick={(event) => void take(event)} className={className} title={fill(texts.fetchNamed, { name })}>
      {children}
    </a>
  );
}
