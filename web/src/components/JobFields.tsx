/** The form's first fields: those of the whole job, and those of one role. */

import type { ReactNode } from 'react';
import { FRAMEWORKS, LEVELS, PRIORITIES, type JobForm } from '../lib/jobform';
import { submit as texts } from '../texts/english/submit';
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
      <legend className="sr-only">{texts.theJob}</legend>
      <Field label={texts.name} wide>
        <input {...bind('name')} required />
      </Field>
      <Field label={texts.framework} wide>
        <Choice {...bind('framework')} options={FRAMEWORKS} />
      </Field>
      <Field label={texts.queue} wide>
        <Choice {...bind('queue')} options={queues} />
      </Field>
      <Field label={texts.priority} wide>
        <Choice {...bind('priority')} options={PRIORITIES} none={texts.default} />
      </Field>
      <Field label={texts.mustWithinOne} wide>
        <Choice {...bind('required')} options={LEVELS} none={texts.anything} />
      </Field>
      <Field label={texts.shouldWithinOne} wide>
        <Choice {...bind('preferred')} options={LEVELS} none={texts.anything} />
      </Field>
      <Field label={texts.imageAllRoles} full>
        <input {...bind('image')} placeholder={texts.noneNodesOwn} />
      </Field>
    </fieldset>
  );
}

export function RoleFields(props: Props) {
  const bind = binding(props);
  return (
    <fieldset disabled={props.disabled} className={GRID}>
      <legend className="sr-only">{texts.tasks}</legend>
      <Field label={texts.command} full>
        <textarea {...bind('command')} rows={4} spellCheck={false} className="field !h-auto py-1.5 font-mono !text-xs" />
      </Field>
      <Field label={texts.replicas}>
        <input {...bind('replicas')} inputMode="numeric" pattern="\s*\d+(\s*-\s*\d+)?\s*" title={texts.replicasMean} placeholder={texts.replicasHint} />
      </Field>
      <Field label={texts.devicesEach}>
        <input {...bind('devices')} type="number" min={0} step="any" />
      </Field>
      <Field label={texts.processorsEach}>
        <input {...bind('cpu')} />
      </Field>
      <Field label={texts.memoryEach}>
        <input {...bind('memory')} placeholder={texts.memoryHint} />
      </Field>
      <Field label={texts.deviceModel} wide>
        <input {...bind('model')} placeholder={texts.any} />
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
