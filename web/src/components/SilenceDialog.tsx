/** Asks for a silence: the matchers of the alerts, how long, and why; it says which alerts it would hold back now. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../api/client';
import * as ask from '../api/monitoring';
import type { Alert } from '../api/types';
import { LENGTHS, matchersOf, readMatchers, silenceLine } from '../lib/alerts';
import { alerts as texts } from '../texts/english/alerts';
import { counts } from '../texts/english/counts';
import { counted, fill } from '../texts/fill';
import { FormDialog, TextField } from './FormDialog';
import { useSettled } from './useSettled';

const USUAL = '2h';
/** An example, in the empty field. */
const MATCHERS = 'node_name="rack3-n1"\nalertname=~"Node.*"';

export function SilenceDialog({ alert, onClose }: { alert: Alert | null; onClose: () => void }) {
  const client = useQueryClient();
  const [text, setText] = useState(alert ? matchersOf(alert).join('\n') : '');
  const [length, setLength] = useState(USUAL);
  const [reason, setReason] = useState('');
  const matchers = readMatchers(text);
  const why = reason.trim();
  const silence = useMutation({
    mutationFn: () => {
      const seconds = LENGTHS.find(([word]) => word === length)?.[1];
      return call('/alerts/silences', { method: 'POST', json: { matchers, seconds, reason: why } });
    },
    onSuccess: async () => {
      onClose();
      await client.invalidateQueries({ queryKey: ['alerts'] });
    },
  });
  return (
    <FormDialog
      title={alert ? fill(texts.silenceTitle, { name: alert.name }) : texts.silenceAlerts}
      word={texts.silence}
      pending={silence.isPending}
      ready={matchers.length > 0 && why !== ''}
      error={silence.error}
      line={silenceLine(matchers, length, why)}
      onSubmit={() => silence.mutate()}
      onClose={onClose}
    >
      <div className="space-y-3">
        <label className="block space-y-1">
          <span className="label">{texts.matchers}</span>
          <textarea
            className="field !h-auto py-1.5 font-mono !text-xs"
            rows={Math.min(8, Math.max(3, matchers.length + 1))}
            required
            spellCheck={false}
            data-first={!alert}
            placeholder={MATCHERS}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </label>
        <Met matchers={readMatchers(useSettled(text))} />
        <div className="flex flex-wrap gap-3">
          <label className="block space-y-1">
            <span className="label block">{texts.for}</span>
            <select className="field !w-36" value={length} onChange={(event) => setLength(event.target.value)}>
              {LENGTHS.map(([word]) => (
                <option key={word} value={word}>
                  {texts.lengths[word]}
                </option>
              ))}
            </select>
          </label>
          <div className="min-w-48 grow">
            <TextField label={texts.why} first={alert !== null} required max={500} hint={texts.newFans} value={reason} onChange={setReason} />
          </div>
        </div>
      </div>
    </FormDialog>
  );
}

/** Which alerts of now the matchers meet, or what is wrong with them. */
function Met({ matchers }: { matchers: string[] }) {
  const { data, error } = useQuery(ask.alertsOf(matchers));
  if (matchers.length === 0) return null;
  const live = data?.items.filter((each) => each.state !== 'resolved') ?? [];
  const names = [...new Set(live.map((each) => each.name))];
  const first = names.slice(0, 3).join(', ');
  const named = names.length > 3 ? counted(texts.moreNames, names.length - 3, { names: first }) : first;
  return (
    <p role="status" className={`text-xs ${error ? 'text-fail' : 'text-muted'}`}>
      {error ? error.message : !data ? '…' : live.length === 0 ? texts.meetsNone : fill(texts.meets, { alerts: counted(counts.alerts, live.length), names: named })}
    </p>
  );
}
