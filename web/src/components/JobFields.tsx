/** The form's first fields: those of the whole job, and those of one role. */

import type { ReactNode } from 'react';
import { FRAMEWORKS, LEVELS, PRIORITIES, type JobForm } from '../lib/jobform';
import { useOpenQueues } from './useOpenQueues';

interface Props {
  form: JobForm;
  onChange: (form: JobForm) => void;
  disabled: boolean;
}

function binding({ form, onChange }: Props) {
  return (name: keyof JobForm) => ({
    value: form[name],
    onChange: (event: { target: { value: string } }) => onChange({ ...form, [name]: event.target.value }),
    className: 'field',
  });
}

const GRID = 'grid grid-cols-2 gap-x-3 gap-y-4 disabled:opacity-60 sm:grid-cols-4';

export function JobFields(props: Props) {
  const queues = useOpenQueues();
  const bind = binding(props);
  return (
    <fieldset disabled={props.disabled} className={GRID}>
      <legend className="sr-only">The job</legend>
      <Field label="Name" wide>
        <input {...bind('name')} required />
      </Field>
      <Field label="Framework" wide>
        <Choice {...bind('framework')} options={FRAMEWORKS} />
      </Field>
      <Field label="Queue" wide>
        <Choice {...bind('queue')} options={queues} />
      </Field>
      <Field label="Priority" wide>
        <Choice {...bind('priority')} options={PRIORITIES} none="default" />
      </Field>
      <Field label="Must be within one" wide>
        <Choice {...bind('required')} options={LEVELS} none="anything" />
      </Field>
      <Field label="Should be within one" wide>
        <Choice {...bind('preferred')} options={LEVELS} none="anything" />
      </Field>
      <Field label="Image of all roles" full>
        <input {...bind('image')} placeholder="none: the node's own environment" />
      </Field>
    </fieldset>
  );
}

export function RoleFields(props: Props) {
  const bind = binding(props);
  return (
    <fieldset disabled={props.disabled} className={GRID}>
      <legend className="sr-only">Tasks</legend>
      <Field label="Command" full>
        <textarea {...bind('command')} rows={4} spellCheck={false} className="field !h-auto py-1.5 font-mono !text-xs" />
      </Field>
      <Field label="Replicas">
        <input {...bind('replicas')} inputMode="numeric" pattern="\s*\d+(\s*-\s*\d+)?\s*" title="A number, or 2-8 for an elastic role" placeholder="4, or 2-8" />
      </Field>
      <Field label="Devices each">
        <input {...bind('devices')} type="number" min={0} step="any" />
      </Field>
      <Field label="Processors each">
        <input {...bind('cpu')} />
      </Field>
      <Field label="Memory each">
        <input {...bind('memory')} placeholder="no limit, or 2Gi" />
      </Field>
      <Field label="Device model" wide>
        <input {...bind('model')} placeholder="any" />
      </Field>
    </fieldset>
  );
}

function Field({ label, wide, full, children }: { label: string; wide?: boolean; full?: boolean; children: ReactNode }) {
  return (
    <label className={`block min-w-0 space-y-1 ${full ? 'col-span-full' : wide ? 'col-span-2' : ''}`}>
      <span className="label">{label}</span>
      {children}
    </label>
  );
}

interface ChoiceProps {
  value: string;
  onChange: (event: { target: { value: string } }) => void;
  className: string;
  options: readonly string[];
  none?: string;
}

/** A select that also shows a value that is not among its options. */
function Choice({ options, none, value, ...rest }: ChoiceProps) {
  const all = value && !options.includes(value) ? [value, ...options] : options;
  return (
    <select value={value} {...rest}>
      {none !== undefined && <option value="">{none}</option>}
      {all.map((option) => (
        <option key={option}>{option}</option>
      ))}
    </select>
  );
}
