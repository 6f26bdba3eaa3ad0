/** The form's further fields, each a short text of what the job file says; folded away until somebody wants them. */

import { useEffect, useMemo, useState } from 'react';
import { MORE, moreEdited, moreOf, type MoreField } from '../lib/jobmore';

interface Props {
  text: string;
  role: string;
  disabled: boolean;
  onText: (text: string) => void;
}

export function MoreFields({ text, role, disabled, onText }: Props) {
  const values = useMemo(() => MORE.map((field) => moreOf(text, role, field)), [text, role]);
  const used = values.filter((each) => each !== '').length;
  return (
    <details className="pt-4">
      <summary className="cursor-pointer text-sm text-muted hover:text-text">
        {`Environment, data, arrays, dependencies, limits${used > 0 && !disabled ? `: ${used} in the file` : ''}`}
      </summary>
      <fieldset disabled={disabled} className="grid grid-cols-1 gap-x-3 gap-y-4 pt-3 disabled:opacity-60 sm:grid-cols-2">
        <legend className="sr-only">More of the job</legend>
        {MORE.map((field, at) => (
          <Field key={`${role}/${field.label}`} field={field} value={values[at]!} onChange={(value) => {
            const changed = moreEdited(text, role, field, value);
            if (changed !== null) onText(changed);
            return changed !== null;
          }} />
        ))}
      </fieldset>
    </details>
  );
}

const LINES = new Set(['pairs', 'inputs', 'outputs']);

/** What is typed stays as it is typed while it says what the file says, or nothing that can be written yet. */
function Field({ field, value, onChange }: { field: MoreField; value: string | null; onChange: (value: string) => boolean }) {
  const [draft, setDraft] = useState(value ?? '');
  const [waits, setWaits] = useState(false);
  useEffect(() => {
    if (value !== null && !waits) setDraft((typed) => (typed.trim().split(/\s+/).join(' ') === value.split(/\s+/).join(' ') ? typed : value));
  }, [value, waits]);
  const shared = {
    className: 'field',
    value: value === null ? '' : draft,
    disabled: value === null,
    placeholder: value === null ? 'written in the file' : field.hint,
    'aria-invalid': waits || undefined,
    onChange: (event: { target: { value: string } }) => {
      setDraft(event.target.value);
      setWaits(!onChange(event.target.value));
    },
  };
  return (
    <label className="block min-w-0 space-y-1">
      <span className="label">{field.label}</span>
      {LINES.has(field.kind) ? <textarea {...shared} rows={2} spellCheck={false} className="field !h-auto py-1.5 font-mono !text-xs" /> : <input {...shared} />}
      {waits && <span className="block text-xs text-wait">{`Write ${field.hint}.`}</span>}
    </label>
  );
}
