/** The roles of the job file: which one the form shows, another one, one less. */

import { useState } from 'react';
import { withoutRole, withRole } from '../lib/jobmore';
import { submit as texts } from '../texts/english/submit';
import { fill } from '../texts/fill';

interface Props {
  text: string;
  roles: readonly string[];
  role: string;
  onChoose: (role: string) => void;
  onText: (text: string) => void;
}

const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

export function RoleChoice({ text, roles, role, onChoose, onText }: Props) {
  const [name, setName] = useState('');
  const misfit = roles.includes(name) ? fill(texts.jobHasRole, { name }) : name && !NAME.test(name) ? texts.roleNamedZ : '';
  const fits = name !== '' && !misfit;
  const add = () => {
    if (!fits) return;
    onText(withRole(text, name));
    onChoose(name);
    setName('');
  };
  return (
    <div className="flex flex-wrap items-center gap-2 pb-4">
      <div role="group" aria-label={texts.role} className="flex flex-wrap gap-1">
        {roles.map((each) => (
          <button key={each} type="button" aria-pressed={each === role} onClick={() => onChoose(each)} className="btn aria-pressed:border-accent aria-pressed:text-accent">
            {each}
          </button>
        ))}
      </div>
      <input
        aria-label={texts.newRole}
        aria-invalid={misfit !== ''}
        aria-describedby="role-misfit"
        placeholder={texts.anotherRole}
        className="field !w-32"
        maxLength={63}
        value={name}
        onChange={(event) => setName(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter') return;
          event.preventDefault();
          add();
        }}
      />
      <button type="button" className="btn" disabled={!fits} onClick={add}>
        {texts.addRole}
      </button>
      {roles.length > 1 && (
        <button
          type="button"
          className="btn"
          onClick={() => {
            onText(withoutRole(text, role));
            onChoose(roles.find((each) => each !== role)!);
          }}
        >
          {fill(texts.remove, { role })}
        </button>
      )}
      <p id="role-misfit" role="status" className="basis-full text-xs text-muted empty:hidden">
        {misfit}
      </p>
    </div>
  );
}
