/** One's own password: the old one where the server asks for it, and the new one twice. */

import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useId, useRef, useState, type FormEvent } from 'react';
import { ApiError, call, part } from '../api/client';
import * as ask from '../api/queries';
import type { UserChanged } from '../api/types';
import { quote } from '../lib/cli';
import { password as texts } from '../texts/english/account';
import { counted, fill } from '../texts/fill';
import { CommandLine } from './Copy';
import { Fault, Skeleton } from './Notices';

/** The server's own bound, which it gives in the words of JSON. */
const SHORTEST = 8;
const LONGEST = 1024;

type FieldName = 'old' | 'chosen' | 'again';
interface Refusal {
  field: FieldName;
  message: string;
}

/** The field that a refusal of the server is about. */
const ABOUT: Readonly<Record<string, FieldName>> = { 'wrong-old-password': 'old', 'bad-password': 'chosen' };

interface Props {
  user: string;
  /** Called with the server's notice once the password is set; every sign-in of the account has ended then. */
  onChanged: (notice: string) => void | Promise<void>;
}

export function PasswordForm({ user, onChanged }: Props) {
  const account = useQuery(ask.user(user));
  if (!account.data) return account.error ? <Fault error={account.error} retry={() => void account.refetch()} /> : <Skeleton rows={4} />;
  return <Form user={user} first={!account.data.hasPassword} onChanged={onChanged} />;
}

function Form({ user, first, onChanged }: Props & { first: boolean }) {
  const form = useRef<HTMLFormElement>(null);
  const [asksOld, setAsksOld] = useState(false);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [keepTokens, setKeepTokens] = useState(false);
  const change = useMutation({
    mutationFn: (json: { password: string; oldPassword: string; keepTokens: boolean }) =>
      call<UserChanged>(`/users/${part(user)}`, { method: 'POST', json }),
    onSuccess: ({ notice }) => onChanged(notice),
    onError: (error) => {
      if (!(error instanceof ApiError)) return;
      const field = ABOUT[error.code];
      if (error.code === 'old-password-needed' && !first) {
        setAsksOld(true);
        setRefusal({ field: 'old', message: texts.asksOld });
      } else if (field) setRefusal({ field, message: error.message });
    },
  });
  useEffect(() => {
    if (refusal) (form.current?.elements.namedItem(refusal.field) as HTMLInputElement | null)?.focus();
  }, [refusal]);

  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (change.isPending) return;
    change.reset();
    const given = new FormData(event.currentTarget);
    const text = (name: FieldName) => String(given.get(name) ?? '');
    const wrong = refusalOf(text('chosen'), text('again'), asksOld ? text('old') : null);
    setRefusal(wrong);
    if (!wrong) change.mutate({ password: text('chosen'), oldPassword: text('old'), keepTokens });
  };
  const tooLate = first && change.error instanceof ApiError && change.error.code === 'old-password-needed';
  const about = (field: FieldName) => (refusal?.field === field ? refusal.message : '');
  return (
    <form ref={form} onSubmit={submit} noValidate aria-label={texts.title} className="space-y-4 pt-2 pb-4">
      <p className="max-w-[65ch] text-sm text-muted">
        {first ? texts.first : texts.later} {texts.ends}
      </p>
      <input type="text" name="user" autoComplete="username" value={user} readOnly hidden />
      {asksOld && <Secret name="old" label={texts.old} complete="current-password" problem={about('old')} />}
      <Secret name="chosen" label={texts.chosen} complete="new-password" problem={about('chosen')} hint={counted(texts.shortest, SHORTEST)} />
      <Secret name="again" label={texts.again} complete="new-password" problem={about('again')} />
      <label className="flex items-start gap-2 text-sm">
        <input type="checkbox" className="mt-0.5" checked={keepTokens} onChange={(event) => setKeepTokens(event.target.checked)} />
        {texts.keepTokens}
      </label>
      {tooLate && <Alert>{texts.tooLate}</Alert>}
      {change.error && !tooLate && !refusal && <Fault error={change.error} />}
      <div className="flex flex-wrap items-center gap-3">
        <button type="submit" className="btn" disabled={change.isPending}>
          {first ? texts.set : texts.change}
        </button>
        <CommandLine line={`corral users change ${quote(user)} --password${keepTokens ? ' --keep-tokens' : ''}`} />
      </div>
    </form>
  );
}

/** What is wrong before anything is sent; `old` is null while it is not asked for. */
function refusalOf(chosen: string, again: string, old: string | null): Refusal | null {
  const length = [...chosen].length;
  if (old === '') return { field: 'old', message: texts.noOld };
  if (length < SHORTEST || length > LONGEST) return { field: 'chosen', message: fill(texts.length, { shortest: SHORTEST, longest: LONGEST }) };
  return chosen === again ? null : { field: 'again', message: texts.differ };
}

interface SecretProps {
  name: FieldName;
  label: string;
  complete: 'current-password' | 'new-password';
  problem: string;
  hint?: string;
}

function Secret({ name, label, complete, problem, hint }: SecretProps) {
  const id = useId();
  const said = [hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(' ');
  return (
    <div className="max-w-sm space-y-1">
      <label htmlFor={id} className="label block">
        {label}
      </label>
      <input
        id={id}
        name={name}
        type="password"
        autoComplete={complete}
        required
        aria-invalid={problem ? true : undefined}
        aria-describedby={said || undefined}
        className="field"
      />
      {hint && (
        <p id={`${id}-hint`} className="text-xs text-muted">
          {hint}
        </p>
      )}
      {problem && <Alert id={`${id}-problem`}>{problem}</Alert>}
    </div>
  );
}

function Alert({ id, children }: { id?: string; children: string }) {
  return (
    <p id={id} role="alert" className="max-w-sm border-l-[3px] border-fail bg-fail-ground px-3 py-2 text-sm">
      {children}
    </p>
  );
}
