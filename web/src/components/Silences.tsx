/** The silences that have not ended: what each is about, who made it, why and until when; administrators end them. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call, part } from '../api/client';
import * as ask from '../api/monitoring';
import type { Silence } from '../api/types';
import { alerts as texts } from '../texts/english/alerts';
import { fill } from '../texts/fill';
import { Fault, Skeleton } from './Notices';
import { FormDialog } from './FormDialog';
import { Until } from './Time';

export function Silences() {
  const list = useQuery(ask.silences(true));
  const [ending, setEnding] = useState<Silence | null>(null);
  const items = list.data?.items ?? [];
  return (
    <>
      {list.error && !list.data && <Fault error={list.error} retry={() => void list.refetch()} />}
      {list.isPending && <Skeleton rows={2} />}
      {list.data && items.length === 0 && <p className="px-2.5 py-3 text-sm text-muted">{texts.nothingSilenced}</p>}
      {items.length > 0 && (
        <table className="grid-table [&_td]:!align-top" aria-label={texts.silences}>
          <thead>
            <tr>
              <th>{texts.alertsWith}</th>
              <th>{texts.why}</th>
              <th className="max-sm:hidden">{texts.by}</th>
              <th>{texts.ends}</th>
              <th>
                <span className="sr-only">{texts.actions}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {items.map((each) => (
              <tr key={each.id} data-silence={each.id}>
                <td className="font-mono text-xs [overflow-wrap:anywhere]">
                  {each.matchers.map((matcher) => (
                    <div key={matcher}>{matcher}</div>
                  ))}
                </td>
                <td className="[overflow-wrap:anywhere]">
                  {each.reason}
                  <div className="text-xs text-muted sm:hidden">{fill(texts.byUser, { by: each.by })}</div>
                </td>
                <td className="text-muted max-sm:hidden">{each.by}</td>
                <td className="text-muted">
                  <Until at={each.ends} />
                </td>
                <td className="text-right">
                  <button type="button" className="link" onClick={() => setEnding(each)} aria-label={fill(texts.endNamed, { reason: each.reason })}>
                    {texts.end}
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {ending && <End silence={ending} onClose={() => setEnding(null)} />}
    </>
  );
}

function End({ silence, onClose }: { silence: Silence; onClose: () => void }) {
  const client = useQueryClient();
  const end = useMutation({
    mutationFn: () => call(`/alerts/silences/${part(silence.id)}`, { method: 'DELETE' }),
    onSuccess: async () => {
      onClose();
      await client.invalidateQueries({ queryKey: ['alerts'] });
    },
  });
  return (
    <FormDialog title={texts.endTitle} word={texts.endIt} pending={end.isPending} error={end.error} line={`corral alerts unsilence ${silence.id}`} onSubmit={() => end.mutate()} onClose={onClose}>
      <p className="text-sm text-muted">
        {fill(texts.toldAgain, { by: silence.by, reason: silence.reason })}
      </p>
    </FormDialog>
  );
}
