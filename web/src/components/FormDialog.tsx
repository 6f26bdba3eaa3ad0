/** A window with a form: what it asks for, the refusal of what was sent, the command line that does the same, two buttons. */

import type { ReactNode } from 'react';
import { ApiError } from '../api/client';
import { shared } from '../texts/english/shared';
import { CommandLine } from './Copy';
import { Dialog } from './Dialog';
import { Fault } from './Notices';
import { Problems } from './Problems';

interface Props {
  title: string;
  /** The button that sends it. */
  word: string;
  /** Whether it takes something away. */
  grave?: boolean;
  /** Whether everything is done, so that its button only closes the window. */
  done?: boolean;
  pending: boolean;
  ready?: boolean;
  error: Error | null;
  line?: string;
  onSubmit: () => void;
  onClose: () => void;
  children?: ReactNode;
}

export function FormDialog({ title, word, grave = false, done = false, pending, ready = true, error, line, onSubmit, onClose, children }: Props) {
  const problems = error instanceof ApiError ? error.problems : [];
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (ready && !pending) onSubmit();
        }}
      >
        {children}
        {error && <Fault error={error} />}
        {problems.length > 0 && <Problems problems={problems.map((each) => ({ ...each, line: 0 }))} />}
        <div className="flex flex-wrap items-center gap-2 pt-5">
          {line && <CommandLine line={line} className="-ml-1.5" />}
          <div className="ml-auto flex gap-2">
            {!done && (
              <button type="button" className="btn" onClick={onClose}>
                {shared.leave}
              </button>
            )}
            <button type="submit" className={`btn ${grave ? 'btn-grave' : 'btn-main'}`} disabled={pending || !ready}>
              {word}
            </button>
          </div>
        </div>
      </form>
    </Dialog>
  );
}

interface TextFieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  first?: boolean;
  required?: boolean;
  hint?: string;
  type?: 'text' | 'email' | 'number' | 'password';
  max?: number;
}

export function TextField({ label, value, onChange, first = false, required = false, hint, type = 'text', max = 1000 }: TextFieldProps) {
  return (
    <label className="block space-y-1">
      <span className="label">{label}</span>
      <input className="field" type={type} data-first={first} required={required} maxLength={max} placeholder={hint} value={value} onChange={(event) => onChange(event.target.value)} autoComplete={type === 'password' ? 'new-password' : 'off'} />
    </label>
  );
}

export function Tick({ checked, onChange, children }: { checked: boolean; onChange: (checked: boolean) => void; children: ReactNode }) {
  return (
    <label className="flex items-start gap-2 text-sm">
      <input type="checkbox" className="mt-0.5" checked={checked} onChange={(event) => onChange(event.target.checked)} />
      <span>{children}</span>
    </label>
  );
}
