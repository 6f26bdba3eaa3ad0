/** A field that searches a list on this page; `/` goes there. */

import { useRef } from 'react';
import { useKeys } from '../lib/keys';

interface Props {
  label: string;
  /** What stands in the empty field. */
  hint?: string;
  width?: string;
  value: string;
  onChange: (value: string) => void;
}

export function SearchField({ label, hint = label, width = '!w-80', value, onChange }: Props) {
  const field = useRef<HTMLInputElement>(null);
  useKeys({
    '/': (event) => {
      event.preventDefault();
      field.current?.focus();
      field.current?.select();
    },
  });
  return (
    <input
      ref={field}
      type="search"
      aria-label={label}
      placeholder={`${hint}  ( / )`}
      className={`field ${width} max-sm:!w-full`}
      value={value}
      onChange={(event) => onChange(event.target.value)}
      onKeyDown={(event) => event.key === 'Escape' && field.current?.blur()}
    />
  );
}
