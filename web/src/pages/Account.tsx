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
import { Fault, Skeleton } from '../components/Notices';
import { PasswordForm } from '../components/PasswordForm';
import { Ago } from '../components/Time';
import { useTitle } from '../components/useTitle';
import { bytes } from '../lib/bytes';
import { absolute } from '../lib/time';

export function Account() {
  const { data: me } = useQuery(ask.me);
  const list = useQuery(ask.tokens);
  const [revoking, setRevoking] = useState<{ id: string; name: string } | null>(null);
  useTitle('Account');
  return (
    <section className="max-w-4xl pt-5">
      <h1 className="text-xl font-semibold tracking-tight">{me?.user}</h1>
      <p className="text-sm text-muted">
        {me?.role === 'admin' ? 'Administrator' : 'User'}
        {me && me.groups.length > 0 && ` · groups: ${me.groups.join(', ')}`}
      </p>
      {me && <Use user={me.user} />}
      {me && <Password user={me.user} />}
      <Channels />
      <h2 className="heading mt-7">Access tokens</h2>
      <p className="max-w-[65ch] pt-2 text-sm text-muted">
        A token lets a program act as you until it expires or is revoked. Sessions of browsers and of the command line are listed too.
      </p>
      <MakeToken />
      {list.error && <Fault error={list.error} retry={() => void list.refetch()} />}
      {!list.data && !list.error && <Skeleton rows={3} />}
      {list.data && (
        <table className="grid-table">
          <thead>
            <tr>
              <th>Name</th>
              <th className="max-sm:hidden">Kind</th>
              <th>Last used</th>
              <th className="max-sm:hidden">Created</th>
              <th className="max-sm:hidden">Expires</th>
              <th>
                <span className="sr-only">Revoke</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {list.data.items.map((token) => (
              <tr key={token.id}>
                <td>{token.name || <span className="text-faint">unnamed</span>}</td>
                <td className="text-muted max-sm:hidden">{token.kind}</td>
                <td>
                  <Ago at={token.lastUsedAt} />
                </td>
                <td className="text-muted max-sm:hidden">
                  <Ago at={token.createdAt} />
                </td>
                <td className="text-muted max-sm:hidden" title={token.expiresAt ? absolute(token.expiresAt) : undefined}>
                  {token.expiresAt?.slice(0, 10) ?? 'never'}
                </td>
                <td className="text-right">
                  <button type="button" className="link !text-fail" onClick={() => setRevoking(token)} aria-label={`Revoke ${token.name}`}>
                    revoke
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
      <h2 className="heading mt-7">What you use</h2>
      <table className="grid-table" aria-label="What you use">
        <thead>
          <tr>
            <th>What</th>
            <th className="text-right">Used</th>
            <th className="text-right">Limit</th>
          </tr>
        </thead>
        <tbody>
          <Counted what="Waiting and running tasks" amount={tasks} said={count} />
          <Counted what="Submissions in this hour" amount={submissions} said={count} />
          <Counted what="Code kept" amount={codeBytes} said={bytes} />
          <Each what="Each stream of a task's log; the newest is kept" limit={logBytesOfStream} />
          <Each what="Each task's working folder" limit={folderBytesOfTask} />
        </tbody>
      </table>
      <p className="max-w-[65ch] pt-2 text-sm text-muted">
        Storages with a folder for each user give you <code>{folder}</code>.{' '}
        <Link to="/efficiency" search={{ user }} className="link">
          What your jobs used of what they asked for
        </Link>
      </p>
    </>
  );
}

const count = (value: number) => value.toLocaleString('en');

function Counted({ what, amount, said }: { what: string; amount: Amount; said: (value: number) => string }) {
  const full = amount.limit > 0 && amount.used >= amount.limit;
  return (
    <tr>
      <td>{what}</td>
      <td className={`text-right tabular-nums ${full ? 'text-fail' : ''}`}>{said(amount.used)}</td>
      <td className="text-right tabular-nums text-muted">{amount.limit ? said(amount.limit) : 'none'}</td>
    </tr>
  );
}

function Each({ what, limit }: { what: string; limit: number }) {
  return (
    <tr>
      <td>{what}</td>
      <td />
      <td className="text-right tabular-nums text-muted">{limit ? bytes(limit) : 'none'}</td>
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
      state: { notice: `Your password is changed; sign in with the new one. ${notice}` },
      replace: true,
    });
  };
  return (
    <>
      <h2 className="heading mt-7">Password</h2>
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
          <span className="label block">What it is for</span>
          <input className="field !w-56" required maxLength={100} value={name} onChange={(event) => setName(event.target.value)} />
        </label>
        <label className="space-y-1">
          <span className="label block">Valid for days</span>
          <input className="field !w-24" type="number" min={1} max={3650} value={days} onChange={(event) => setDays(event.target.valueAsNumber)} />
        </label>
        <button type="submit" className="btn" disabled={make.isPending}>
          Make a token
        </button>
        <CommandLine line={`corral token create${name ? ` ${JSON.stringify(name)}` : ''}`} />
      </form>
      {make.error && <Fault error={make.error} />}
      {make.data && (
        <p role="status" className="mb-4 border-l-[3px] border-accent bg-accent-ground px-4 py-3 text-sm">
          This is the only time it is shown: <CopyWord text={make.data.token} />
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
    <Dialog title={`Revoke ${token.name || 'this token'}?`} onClose={onClose}>
      <p className="text-sm text-muted">Programs that use it are signed out at once.</p>
      {revoke.error && <Fault error={revoke.error} />}
      <div className="flex flex-wrap items-center gap-2 pt-5">
        <CommandLine line={`corral token revoke ${token.id}`} className="-ml-1.5" />
        <span className="grow" />
        <button type="button" className="btn" onClick={onClose}>
          Keep it
        </button>
        <button type="button" data-first className="btn btn-grave" onClick={() => revoke.mutate()} disabled={revoke.isPending}>
          Revoke
        </button>
      </div>
    </Dialog>
  );
}
