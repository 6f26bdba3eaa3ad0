/** A field that searches a list on this page; `/` goes there. */

import { useRef } from 'react';
import { useKeys } from '../lib/keys';

export function SearchField({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
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
      placeholder={`${label}  ( / )`}
      className="field !w-80 max-sm:!w-full"
      value={value}
      onChange={(event) => onChange(event.target.value)}
      onKeyDown={(event) => event.key === 'Escape' && field.current?.blur()}
    />
  );
}
