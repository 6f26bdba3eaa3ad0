/** A list of names, each with a button to take it back, and a field with suggestions to add one. */

import { useId, useState, type ReactNode } from 'react';
import { storages as texts } from '../texts/english/storages';
import { fill } from '../texts/fill';

interface Props {
  /** What the list is of, such as `Granted to`. */
  label: string;
  items: readonly string[];
  /** What can be added; null where nothing is changed here. */
  offered: readonly string[] | null;
  /** What the field is for, the button that adds, and what the button of an item does. */
  /** What its fields and buttons say; `remove` has a gap `{name}`. */
  words: { choose: string; add: string; remove: string };
  none: string;
  pending: boolean;
  show?: (item: string) => ReactNode;
  onAdd: (item: string) => void;
  onRemove: (item: string) => void;
}

export function Granted({ label, items, offered, words, none, pending, show = (item) => item, onAdd, onRemove }: Props) {
  const id = useId();
  return (
    <div role="group" aria-labelledby={id} className="space-y-2 py-2">
      <p id={id} className="label">
        {label}
      </p>
      {items.length === 0 && <p className="text-sm text-muted">{none}</p>}
      {items.length > 0 && (
        <ul aria-labelledby={id} className="flex max-h-60 flex-wrap gap-1.5 overflow-y-auto">
          {items.map((each) => (
            <li key={each} className="inline-flex h-7 max-w-full items-center gap-1 rounded-[4px] border border-line-strong bg-raised px-2 text-sm">
              <span className="truncate">{show(each)}</span>
              {offered && (
                <button type="button" className="btn-bare -mr-1.5 !h-6 !px-1.5" disabled={pending} onClick={() => onRemove(each)} aria-label={fill(words.remove, { name: each })} title={fill(words.remove, { name: each })}>
                  ✕
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
      {offered && <Adder offered={offered.filter((each) => !items.includes(each))} words={words} pending={pending} onAdd={onAdd} />}
    </div>
  );
}

interface AdderProps {
  offered: readonly string[];
  words: Props['words'];
  pending: boolean;
  onAdd: (item: string) => void;
}

function Adder({ offered, words, pending, onAdd }: AdderProps) {
  const id = useId();
  const [chosen, setChosen] = useState('');
  if (offered.length === 0) return null;
  return (
    <form
      className="flex gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        if (!chosen.trim()) return;
        onAdd(chosen.trim());
        setChosen('');
      }}
    >
      <input aria-label={words.choose} placeholder={words.choose} list={id} className="field !w-48" maxLength={126} autoComplete="off" value={chosen} onChange={(event) => setChosen(event.target.value)} />
      <datalist id={id}>
        {offered.map((each) => (
          <option key={each} value={each} label={each === '*' ? texts.allOfThem : undefined} />
        ))}
      </datalist>
      <button type="submit" className="btn" disabled={pending || !chosen.trim()}>
        {words.add}
      </button>
    </form>
  );
}
