/** The labelled controls of a what-if question. */

import type { ReactNode } from 'react';

interface ChoiceProps {
  label: string;
  value: string;
  required?: boolean;
  onChange: (value: string) => void;
  children: ReactNode;
}

export function Choice({ label, value, required, onChange, children }: ChoiceProps) {
  return (
    <label className="block min-w-0 space-y-1">
      <span className="label">{label}</span>
      <select className="field" value={value} required={required} onChange={(event) => onChange(event.target.value)}>
        {children}
      </select>
    </label>
  );
}

interface AmountProps {
  label: string;
  least?: number;
  most?: number;
  value: string;
  onChange: (value: string) => void;
}

export function Amount({ label, least = 0, most = 100_000, value, onChange }: AmountProps) {
  return (
    <label className="block min-w-0 space-y-1">
      <span className="label">{label}</span>
      <input className="field" type="number" min={least} max={most} value={value} onChange={(event) => onChange(event.target.value)} />
    </label>
  );
}

/** The options of a list of words; the first one, if there is a word for it, means none. */
export function Options({ none, words }: { none?: string; words: readonly (string | readonly [value: string, word: string])[] }) {
  return (
    <>
      {none !== undefined && <option value="">{none}</option>}
      {words.map((each) => {
        const [value, word] = typeof each === 'string' ? [each, each] : each;
        return (
          <option key={value} value={value}>
            {word}
          </option>
        );
      })}
    </>
  );
}

interface FileTextProps {
  label: string;
  placeholder: string;
  /** The class of its height. */
  height: string;
  value: string;
  onChange: (text: string) => void;
}

/** The text of a file, or of several documents. */
export function FileText({ label, placeholder, height, value, onChange }: FileTextProps) {
  return (
    <label className="block space-y-1">
      <span className="label">{label}</span>
      <textarea
        className={`field ${height} py-1.5 font-mono !text-xs`}
        placeholder={placeholder}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        spellCheck={false}
      />
    </label>
  );
}
