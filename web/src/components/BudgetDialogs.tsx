/** Setting a budget, adding to it until its window ends, and removing it; each shows what it does to the present window. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../api/client';
import * as ask from '../api/monitoring';
import { queues } from '../api/queries';
import type { Budget } from '../api/types';
import { begun, budgetPath, isReady, KINDS, readHours, readWarn, removeLine, sameBudget, setEffect, setLine, topUpEffect, topUpLine, WHEN_USED_UP, WINDOWS, type Wanted, type WhenUsedUp } from '../lib/budgets';
import { usage as texts } from '../texts/english/usage';
import { fill, number, textOf } from '../texts/fill';
import { FormDialog, TextField } from './FormDialog';

/** A change of a budget; all lists of budgets are asked for again after it. */
function useChange(change: () => Promise<unknown>, onClose: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: async () => {
      onClose();
      await client.invalidateQueries({ queryKey: ask.budgets.queryKey });
    },
  });
}

export function SetBudget({ of, onClose }: { of: Budget | null; onClose: () => void }) {
  const [wanted, setWanted] = useState(() => begun(of));
  const set = (change: Partial<Wanted>) => setWanted({ ...wanted, ...change });
  const { data } = useQuery(ask.budgets);
  const there = data?.items.find((each) => sameBudget(each, wanted));
  const save = useChange(() => call<Budget>(budgetPath(wanted), { method: 'PUT', json: { deviceHours: readHours(wanted.hours), warnAt: readWarn(wanted.warn), whenUsedUp: wanted.then } }), onClose);
  return (
    <FormDialog title={of ? fill(texts.changeBudget, { kind: textOf(texts.kinds, of.kind), name: of.name }) : texts.newBudget} word={texts.setIt} pending={save.isPending} ready={isReady(wanted)} error={save.error} line={setLine(wanted)} onSubmit={() => save.mutate()} onClose={onClose}>
      <div className="space-y-3">
        {of ? <p className="text-sm text-muted">{fill(texts.deviceHoursEachUtc, { window: textOf(texts.windows, of.window) })}</p> : <Whose wanted={wanted} onChange={set} />}
        <div className="flex flex-wrap gap-3">
          <TextField label={fill(texts.deviceHoursIn, { window: textOf(texts.windows, wanted.window) })} first={of !== null} required max={20} hint="500" value={wanted.hours} onChange={(hours) => set({ hours })} />
          <TextField label={texts.warnSubmissionsFrom} required max={10} hint="80" value={wanted.warn} onChange={(warn) => set({ warn })} />
        </div>
        <WhatThen then={wanted.then} onChange={(then) => set({ then })} />
        {there && !of && <p className="text-sm text-wait">{fill(texts.thereOneAlready, { deviceHours: number(there.deviceHours) })}</p>}
        <p role="status" className="text-sm text-muted">
          {setEffect(wanted, there)}
        </p>
      </div>
    </FormDialog>
  );
}

/** What becomes of jobs that run while it is used up. */
function WhatThen({ then, onChange }: { then: WhenUsedUp; onChange: (then: WhenUsedUp) => void }) {
  return (
    <label className="block space-y-1">
      <span className="label block">{texts.whenUsedUp}</span>
      <select className="field" value={then} onChange={(event) => onChange(event.target.value as WhenUsedUp)}>
        {WHEN_USED_UP.map((value) => (
          <option key={value} value={value}>
            {texts.whenUsed[value]}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Whose budget it is and how long its window lasts. */
function Whose({ wanted, onChange }: { wanted: Wanted; onChange: (change: Partial<Wanted>) => void }) {
  const { data } = useQuery(queues);
  return (
    <div className="flex flex-wrap gap-3">
      <Choice label={texts.ofA} first value={wanted.kind} values={KINDS} labels={texts.kinds} onChange={(kind) => onChange({ kind, name: '' })} />
      {wanted.kind === 'queue' ? (
        <Choice label={texts.queue} value={wanted.name} values={['', ...(data?.items.map(({ name }) => name) ?? [])]} onChange={(name) => onChange({ name })} />
      ) : (
        <TextField label={texts.user} required max={126} hint={texts.ada} value={wanted.name} onChange={(name) => onChange({ name })} />
      )}
      <Choice label={texts.inEach} value={wanted.window} values={WINDOWS} labels={texts.windows} onChange={(window) => onChange({ window })} />
    </div>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  values: readonly string[];
  /** The values in words, where they are the portal's own. */
  labels?: Readonly<Record<string, string>>;
  first?: boolean;
  onChange: (value: string) => void;
}

function Choice({ label, labels, value, values, first = false, onChange }: ChoiceProps) {
  return (
    <label className="block space-y-1">
      <span className="label block">{label}</span>
      <select aria-label={label} className="field !w-auto" required data-first={first} value={value} onChange={(event) => onChange(event.target.value)}>
        {values.map((each) => (
          <option key={each} value={each}>
            {(labels ? textOf(labels, each) : each) || texts.chooseOne}
          </option>
        ))}
      </select>
    </label>
  );
}

export function TopUpBudget({ of, onClose }: { of: Budget; onClose: () => void }) {
  const [hours, setHours] = useState('');
  const [reason, setReason] = useState('');
  const why = reason.trim();
  const save = useChange(() => call<Budget>(`${budgetPath(of)}/top-ups`, { method: 'POST', json: { deviceHours: readHours(hours), reason: why } }), onClose);
  return (
    <FormDialog title={fill(texts.addBudget, { kind: textOf(texts.kinds, of.kind), name: of.name })} word={texts.addIt} pending={save.isPending} ready={readHours(hours) !== null && why !== ''} error={save.error} line={topUpLine(of, hours, why)} onSubmit={() => save.mutate()} onClose={onClose}>
      <div className="space-y-3">
        <TextField label={fill(texts.deviceHoursAdd, { window: textOf(texts.windows, of.window) })} first required max={20} hint="100" value={hours} onChange={setHours} />
        <TextField label={texts.whyKeptAudit} required max={500} hint={texts.deadlinePaper} value={reason} onChange={setReason} />
        <p role="status" className="text-sm text-muted">
          {topUpEffect(of, hours)}
        </p>
      </div>
    </FormDialog>
  );
}

export function RemoveBudget({ of, onClose }: { of: Budget; onClose: () => void }) {
  const remove = useChange(() => call(budgetPath(of), { method: 'DELETE' }), onClose);
  return (
    <FormDialog title={fill(texts.removeBudget, { kind: textOf(texts.kinds, of.kind), name: of.name })} word={texts.remove} grave pending={remove.isPending} error={remove.error} line={removeLine(of)} onSubmit={() => remove.mutate()} onClose={onClose}>
      <p className="text-sm text-muted">{fill(texts.whatWasAdded, { window: textOf(texts.windows, of.window), kind: textOf(texts.kinds, of.kind), name: of.name })}</p>
    </FormDialog>
  );
}
