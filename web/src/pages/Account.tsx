/** The reader's account: its use, its password, its channels for notifications, and tokens for programs, made, shown once and revoked. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { call, part } from '../api/client';
import * as ask from '../api/queries';
import type { Amount, NewToken } from '../api/types';
import { Channels } from '../components/Channels';
import { CommandLine, CopyWord } from '../components/Copy';
import { Dialog } from '../components/Dialog';
import { LanguageChoice } from '../components/LanguageChoice';
import { Fault, Skeleton } from '../components/Notices';
import { PasswordForm } from '../components/PasswordForm';
import { Ago } from '../components/Time';
import { useTitle } from '../components/useTitle';
import { bytes } from '../lib/bytes';
import { absolute } from '../lib/time';
import { account as texts, password, amounts } from '../texts/english/account';
import { fill, filled, number, textOf } from '../texts/fill';

export function Account() {
  const { data: me } = useQuery(ask.me);
  const list = useQuery(ask.tokens);
  const [revoking, setRevoking] = useState<{ id: string; name: string } | null>(null);
  useTitle(texts.title);
  const role = me?.role === 'admin' ? texts.admin : texts.user;
  return (
    <section className="max-w-4xl pt-5">
      <h1 className="text-xl font-semibold tracking-tight">{me?.user}</h1>
      <p className="text-sm text-muted">
        {me && me.groups.length > 0 ? fill(texts.inGroups, { role, groups: me.groups.join(', ') }) : role}
      </p>
      {me && <Use user={me.user} />}
      {me && <Password user={me.user} />}
      <LanguageChoice />
      <Channels />
      <h2 className="heading mt-7">{texts.tokens}</h2>
      <p className="max-w-[65ch] pt-2 text-sm text-muted">
        {texts.tokensNote}
      </p>
      <MakeToken />
      {list.error && <Fault error={list.error} retry={() => void list.refetch()} />}
      {!list.data && !list.error && <Skeleton rows={3} />}
      {list.data && (
        <table className="grid-table">
          <thead>
            <tr>
              <th>{texts.name}</th>
              <th className="max-sm:hidden">{texts.kind}</th>
              <th>{texts.lastUsed}</th>
              <th className="max-sm:hidden">{texts.created}</th>
              <th className="max-sm:hidden">{texts.expires}</th>
              <th>
                <span className="sr-only">{texts.revoke}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {list.data.items.map((token) => (
              <tr key={token.id}>
                <td>{token.name || <span className="text-faint">{texts.unnamed}</span>}</td>
                <td className="text-muted max-sm:hidden">{textOf(texts.kinds, token.kind)}</td>
                <td>
                  <Ago at={token.lastUsedAt} />
                </td>
                <td className="text-muted max-sm:hidden">
                  <Ago at={token.createdAt} />
                </td>
                <td className="text-muted max-sm:hidden" title={token.expiresAt ? absolute(token.expiresAt) : undefined}>
                  {token.expiresAt?.slice(0, 10) ?? texts.never}
                </td>
                <td className="whitespace-nowrap text-right">
                  <button type="button" className="link !text-fail" onClick={() => setRevoking(token)} aria-label={fill(texts.revokeNamed, { name: token.name })}>
                    {texts.revokeRow}
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {revoking && <Revoke token={revoking} onClose={() => setRevoking(null)} />}
    </section>
  );
}

/** What counts against the bounds of one account, and what each task has. */
function Use({ user }: { user: string }) {
  const use = useQuery(ask.useOf(user));
  if (use.error) return <Fault error={use.error} retry={() => void use.refetch()} />;
  if (!use.data) return <Skeleton rows={5} />;
  const { tasks, submissions, codeBytes, logBytesOfStream, folderBytesOfTask, folder } = use.data;
  return (
    <>
      <h2 className="heading mt-7">{amounts.title}</h2>
      <table className="grid-table" aria-label={amounts.title}>
        <thead>
          <tr>
            <th>{amounts.what}</th>
            <th className="text-right">{amounts.used}</th>
            <th className="text-right">{amounts.limit}</th>
          </tr>
        </thead>
        <tbody>
          <Counted what={amounts.tasks} amount={tasks} said={number} />
          <Counted what={amounts.submissions} amount={submissions} said={number} />
          <Counted what={amounts.code} amount={codeBytes} said={bytes} />
          <Each what={amounts.log} limit={logBytesOfStream} />
          <Each what={amounts.folder} limit={folderBytesOfTask} />
        </tbody>
      </table>
      <p className="max-w-[65ch] pt-2 text-sm text-muted">
        {filled(amounts.yourFolder, { folder: <code>{folder}</code> })}{' '}
        <Link to="/efficiency" search={{ user }} className="link">
          {amounts.efficiency}
        </Link>
      </p>
    </>
  );
}

function Counted({ what, amount, said }: { what: string; amount: Amount; said: (value: number) => string }) {
  const full = amount.limit > 0 && amount.used >= amount.limit;
  return (
    <tr>
      <td>{what}</td>
      <td className={`whitespace-nowrap text-right tabular-nums ${full ? 'text-fail' : ''}`}>{said(amount.used)}</td>
      <td className="whitespace-nowrap text-right tabular-nums text-muted">{amount.limit ? said(amount.limit) : amounts.none}</td>
    </tr>
  );
}

function Each({ what, limit }: { what: string; limit: number }) {
  return (
    <tr>
      <td>{what}</td>
      <td />
      <td className="whitespace-nowrap text-right tabular-nums text-muted">{limit ? bytes(limit) : amounts.none}</td>
    </tr>
  );
}

/** The sign-in of this page ends with the old password, so the notice is shown on the sign-in page. */
function Password({ user }: { user: string }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const signInAgain = async (notice: string) => {
    client.clear();
    await navigate({
      to: '/sign-in',
      search: { next: '/account' },
      state: { notice: fill(password.changed, { notice }) },
      replace: true,
    });
  };
  return (
    <>
      <h2 className="heading mt-7">{password.title}</h2>
      <PasswordForm user={user} onChanged={signInAgain} />
    </>
  );
}

function MakeToken() {
  const client = useQueryClient();
  const [name, setName] = useState('');
  const [days, setDays] = useState(90);
  const make = useMutation({
    mutationFn: () => call<NewToken>('/tokens', { method: 'POST', json: { name, days } }),
    onSuccess: () => client.invalidateQueries({ queryKey: ask.tokens.queryKey }),
  });
  return (
    <>
      <form
        className="flex flex-wrap items-end gap-3 py-4"
        onSubmit={(event) => {
          event.preventDefault();
          make.mutate();
        }}
      >
        <label className="space-y-1">
          <span className="label block">{texts.purpose}</span>
          <input className="field !w-56" required maxLength={100} value={name} onChange={(event) => setName(event.target.value)} />
        </label>
        <label className="space-y-1">
          <span className="label block">{texts.days}</span>
          <input className="field !w-24" type="number" min={1} max={3650} value={days} onChange={(event) => setDays(event.target.valueAsNumber)} />
        </label>
        <button type="submit" className="btn" disabled={make.isPending}>
          {texts.make}
        </button>
        <CommandLine line={`corral token create${name ? ` ${JSON.stringify(name)}` : ''}`} />
      </form>
      {make.error && <Fault error={make.error} />}
      {make.data && (
        <p role="status" className="mb-4 border-l-[3px] border-accent bg-accent-ground px-4 py-3 text-sm">
          {filled(texts.shownOnce, { token: <CopyWord text={make.data.token} /> })}
        </p>
      )}
    </>
  );
}

function Revoke({ token, onClose }: { token: { id: string; name: string }; onClose: () => void }) {
  const client = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => call(`/tokens/${part(token.id)}`, { method: 'DELETE' }),
    onSuccess: async () => {
      onClose();
      await client.invalidateQueries({ queryKey: ask.tokens.queryKey });
    },
  });
  return (
    <Dialog title={fill(texts.revokeTitle, { name: token.name || texts.thisToken })} onClose={onClose}>
      <p className="text-sm text-muted">{texts.revokeNote}</p>
      {revoke.error && <Fault error={revoke.error} />}
      <div className="flex flex-wrap items-center gap-2 pt-5">
        <CommandLine line={`corral token revoke ${token.id}`} className="-ml-1.5" />
        <span className="grow" />
        <button type="button" className="btn" onClick={onClose}>
          {texts.keep}
        </button>
        <button type="button" data-first className="btn btn-grave" onClick={() => revoke.mutate()} disabled={revoke.isPending}>
          {texts.revoke}
        </button>
      </div>
    </Dialog>
  );
}
