/** Items of OpenPAI's marketplace, from the JSON that its API gave, with the pictures that their texts name. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import * as ask from '../api/queries';
import { share } from '../api/templates';
import { pictureUri } from '../lib/pictures';
import { baseName, imported, itemsIn, missingPictures } from '../lib/templates';
import { templates as texts } from '../texts/english/templates';
import { fill } from '../texts/fill';
import { FormDialog } from './FormDialog';

interface Outcome {
  name: string;
  refusal?: string;
  missing: string[];
}

const LARGEST_BYTES = 50_000_000;

export function ImportItems({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const { data: me } = useQuery(ask.me);
  const [source, setSource] = useState<File | null>(null);
  const [pictures, setPictures] = useState<readonly File[]>([]);
  const bring = useMutation({
    mutationFn: () => importAll(source!, pictures, me?.role === 'admin' ? null : (me?.groups ?? [])),
    onSettled: () => client.invalidateQueries({ queryKey: ['templates'] }),
  });
  const done = bring.data;
  return (
    <FormDialog title={texts.importItems} word={done ? texts.done : texts.import} done={!!done} pending={bring.isPending} ready={source !== null} error={bring.error} onSubmit={() => (done ? onClose() : bring.mutate())} onClose={onClose}>
      {done ? (
        <Outcomes of={done} />
      ) : (
        <div className="space-y-3">
          <p className="text-sm text-muted">{texts.jsonItemsOpenpais}</p>
          <FileField label={texts.itemsJson} accept=".json,application/json" onChange={(files) => setSource(files[0] ?? null)} />
          <FileField label={texts.picturesTheirTexts} accept="image/png,image/jpeg,image/gif,image/webp" multiple onChange={setPictures} />
          <p className="text-xs text-muted">{texts.pictureBelongsText}</p>
        </div>
      )}
    </FormDialog>
  );
}

function FileField({ label, accept, multiple = false, onChange }: { label: string; accept: string; multiple?: boolean; onChange: (files: File[]) => void }) {
  return (
    <label className="block space-y-1">
      <span className="label">{label}</span>
      <input type="file" className="block w-full text-sm" accept={accept} multiple={multiple} onChange={(event) => onChange([...(event.target.files ?? [])])} />
    </label>
  );
}

function Outcomes({ of }: { of: readonly Outcome[] }) {
  const brought = of.filter((each) => !each.refusal);
  return (
    <div role="status" className="max-h-[50vh] space-y-2 overflow-y-auto text-sm">
      <p>{fill(texts.ofImported, { brought: brought.length, of: of.length })}</p>
      <ul className="space-y-1">
        {of
          .filter((each) => each.refusal || each.missing.length > 0)
          .map((each) => (
            <li key={each.name} className="break-words text-muted">
              <span className="font-medium text-text">{each.name}</span>: {each.refusal ?? fill(texts.pictureWasChosen, { baseName: each.missing.map(baseName).join(', ') })}
            </li>
          ))}
      </ul>
    </div>
  );
}

async function importAll(source: File, chosen: readonly File[], mine: readonly string[] | null): Promise<Outcome[]> {
  if (source.size > LARGEST_BYTES) throw new Error(texts.fileHasMore);
  let items: ReturnType<typeof itemsIn>;
  try {
    items = itemsIn(await source.text());
  } catch (error) {
    throw error instanceof SyntaxError ? new Error(fill(texts.isNoJson, { name: source.name })) : error;
  }
  const pictures: Record<string, string> = {};
  for (const file of chosen) pictures[file.name.toLowerCase()] = await pictureUri(file);
  const outcomes: Outcome[] = [];
  for (const each of items) {
    const item = imported(each, pictures, mine);
    const refusal = await share(item).then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    outcomes.push({ name: item.name, refusal, missing: missingPictures(item) });
  }
  return outcomes;
}
