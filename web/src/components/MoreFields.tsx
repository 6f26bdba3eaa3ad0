/** The form's further fields in folded groups, each a short text of what the job file says. */

import { useEffect, useId, useMemo, useState } from 'react';
import { optionOf, saidOf, type FieldGroup, type Kind, type MoreField } from '../lib/jobfields';
import { moreEdited, moreOf } from '../lib/jobmore';
import { jobFields as fieldTexts } from '../texts/english/jobfields';
import { submit as texts } from '../texts/english/submit';
import { fill } from '../texts/fill';

interface Props {
  groups: readonly FieldGroup[];
  text: string;
  role: string;
  disabled: boolean;
  onText: (text: string) => void;
}

export function MoreFields({ groups, text, role, disabled, onText }: Props) {
  const values = useMemo(() => groups.map(({ fields }) => moreOf(text, role, fields)), [groups, text, role]);
  return groups.map(({ key, fields }, group) => {
    const title = fieldTexts.groups[key];
    const used = values[group]!.filter((each) => each !== '').length;
    return (
      <details key={key} className="pt-3">
        <summary className="cursor-pointer text-sm text-muted hover:text-text">{used > 0 && !disabled ? fill(texts.inTheFile, { title, used }) : title}</summary>
        <fieldset disabled={disabled} className="grid grid-cols-1 gap-x-3 gap-y-4 pt-3 disabled:opacity-60 sm:grid-cols-2">
          <legend className="sr-only">{title}</legend>
          {fields.map((field, at) => (
            <Field
              key={`${field.role ? role : ''}/${field.path.join('/')}`}
              field={field}
              value={values[group]![at]!}
              onChange={(value) => {
                const changed = moreEdited(text, role, field, value);
                if (changed !== null) onText(changed);
                return changed !== null;
              }}
            />
          ))}
        </fieldset>
      </details>
    );
  });
}

const LINES = new Set<Kind>(['pairs', 'numbers', 'inputs', 'outputs', 'labels', 'taints', 'volumes', 'containers']);

/** What a text says, however it is spaced; names and their values stand in any order. */
function meant(kind: Kind, text: string): string {
  const lines = text.trim().split('\n').map((line) => line.trim().split(/\s+/).join(' '));
  return kind === 'pairs' || kind === 'numbers' ? lines.filter(Boolean).sort().join('\n') : lines.join(' ');
}

/** What is typed stays as it is typed while it says what the file says, or nothing that can be written yet. */
function Field({ field, value, onChange }: { field: MoreField; value: string | null; onChange: (value: string) => boolean }) {
  const [draft, setDraft] = useState(value ?? '');
  const [waits, setWaits] = useState(false);
  useEffect(() => {
    if (value !== null && !waits) setDraft((typed) => (meant(field.kind, typed) === meant(field.kind, value) ? typed : value));
  }, [value, waits, field.kind]);
  const id = useId();
  const { label, hint } = saidOf(field);
  if (field.kind === 'words' && field.options) return <Checks field={field} value={value} onChange={onChange} />;
  const shared = {
    id,
    className: 'field',
    value: value === null ? '' : draft,
    disabled: value === null,
    'aria-invalid': waits || undefined,
    'aria-describedby': waits ? `${id}-waits` : undefined,
    onChange: (event: { target: { value: string } }) => {
      setDraft(event.target.value);
      setWaits(!onChange(event.target.value));
    },
  };
  const placeholder = value === null ? texts.writtenInFile : hint;
  return (
    <div className="min-w-0 space-y-1">
      <label htmlFor={id} className="label block">
        {label}
      </label>
      {field.kind === 'choice' ? (
        <select {...shared}>
          <option value="">{placeholder}</option>
          {draft && !field.options?.includes(draft) && <option>{draft}</option>}
          {field.options?.map((said) => (
            <option key={said} value={said}>
              {optionOf(said)}
            </option>
          ))}
        </select>
      ) : LINES.has(field.kind) ? (
        <textarea {...shared} placeholder={placeholder} rows={2} spellCheck={false} className="field !h-auto py-1.5 font-mono !text-xs" />
      ) : (
        <input {...shared} placeholder={placeholder} />
      )}
      {waits && <p id={`${id}-waits`} className="text-xs text-wait">{fill(texts.write, { hint })}</p>}
    </div>
  );
}

/** A list of words that are all known: each is checked or not, and the file keeps its order. */
function Checks({ field, value, onChange }: { field: MoreField; value: string | null; onChange: (value: string) => boolean }) {
  const said = (value ?? '').split(/\s+/).filter(Boolean);
  const known = field.options!;
  const { label, hint } = saidOf(field);
  return (
    <fieldset disabled={value === null} className="min-w-0 space-y-1 sm:col-span-2">
      <legend className="label">{label}</legend>
      <div className="flex flex-wrap gap-x-4 gap-y-1 text-sm">
        {[...known, ...said.filter((word) => !known.includes(word))].map((word) => (
          <label key={word} className="flex items-center gap-1.5">
            <input
              type="checkbox"
              checked={said.includes(word)}
              onChange={(event) => onChange(event.target.checked ? [...said, word].join(' ') : said.filter((each) => each !== word).join(' '))}
            />
            {known.includes(word) ? optionOf(word) : word}
          </label>
        ))}
      </div>
      {said.length === 0 && <p className="text-xs text-muted">{value === null ? texts.writtenFile : fill(texts.none, { hint })}</p>}
    </fieldset>
  );
}
