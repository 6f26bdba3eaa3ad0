/** Setting a budget, adding to it until its window ends, and removing it; each shows what it does to the present window. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../api/client';
import * as ask from '../api/monitoring';
import { queues } from '../api/queries';
import type { Budget } from '../api/types';
import { begun, budgetPath, isReady, KINDS, readHours, readWarn, removeLine, sameBudget, setEffect, setLine, topUpEffect, topUpLine, WHEN_USED_UP, WINDOWS, type Wanted, type WhenUsedUp } from '../lib/budgets';
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
    <FormDialog title={of ? `Change the budget of ${of.kind} ${of.name}` : 'New budget'} word="Set it" pending={save.isPending} ready={isReady(wanted)} error={save.error} line={setLine(wanted)} onSubmit={() => save.mutate()} onClose={onClose}>
      <div className="space-y-3">
        {of ? <p className="text-sm text-muted">Device-hours of each {of.window}, in UTC.</p> : <Whose wanted={wanted} onChange={set} />}
        <div className="flex flex-wrap gap-3">
          <TextField label={`Device-hours in each ${wanted.window}`} first={of !== null} required max={20} hint="500" value={wanted.hours} onChange={(hours) => set({ hours })} />
          <TextField label="Warn submissions from, in %" required max={10} hint="80" value={wanted.warn} onChange={(warn) => set({ warn })} />
        </div>
        <WhatThen then={wanted.then} onChange={(then) => set({ then })} />
        {there && !of && <p className="text-sm text-wait">There is one already, of {there.deviceHours.toLocaleString('en')} device-hours; this takes its place.</p>}
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
      <span className="label block">When it is used up, jobs that run</span>
      <select className="field" value={then} onChange={(event) => onChange(event.target.value as WhenUsedUp)}>
        {Object.entries(WHEN_USED_UP).map(([value, words]) => (
          <option key={value} value={value}>
            {words}
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
      <Choice label="Of a" first value={wanted.kind} values={KINDS} onChange={(kind) => onChange({ kind, name: '' })} />
      {wanted.kind === 'queue' ? (
        <Choice label="Queue" value={wanted.name} values={['', ...(data?.items.map(({ name }) => name) ?? [])]} onChange={(name) => onChange({ name })} />
      ) : (
        <TextField label="User" required max={126} hint="ada" value={wanted.name} onChange={(name) => onChange({ name })} />
      )}
      <Choice label="In each" value={wanted.window} values={WINDOWS} onChange={(window) => onChange({ window })} />
    </div>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  values: readonly string[];
  first?: boolean;
  onChange: (value: string) => void;
}

function Choice({ label, value, values, first = false, onChange }: ChoiceProps) {
  return (
    <label className="block space-y-1">
      <span className="label block">{label}</span>
      <select aria-label={label} className="field !w-auto" required data-first={first} value={value} onChange={(event) => onChange(event.target.value)}>
        {values.map((each) => (
          <option key={each} value={each}>
            {each || 'choose one'}
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
    <FormDialog title={`Add to the budget of ${of.kind} ${of.name}`} word="Add it" pending={save.isPending} ready={readHours(hours) !== null && why !== ''} error={save.error} line={topUpLine(of, hours, why)} onSubmit={() => save.mutate()} onClose={onClose}>
      <div className="space-y-3">
        <TextField label={`Device-hours to add to this ${of.window}`} first required max={20} hint="100" value={hours} onChange={setHours} />
        <TextField label="Why; it is kept in the audit log" required max={500} hint="deadline of the paper" value={reason} onChange={setReason} />
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
    <FormDialog title={`Remove the budget of ${of.kind} ${of.name}?`} word="Remove" grave pending={remove.isPending} error={remove.error} line={removeLine(of)} onSubmit={() => remove.mutate()} onClose={onClose}>
      <p className="text-sm text-muted">What was added to it goes too. No {of.window} bounds what {of.kind} {of.name} uses any more, unless another budget does.</p>
    </FormDialog>
  );
}
