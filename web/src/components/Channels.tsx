/** The reader's channels for notifications: added, verified, tested, removed, with what was last sent there. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call, part } from '../api/client';
import * as ask from '../api/queries';
import type { Channel, NewChannel, Notification } from '../api/types';
import { channels as texts } from '../texts/english/account';
import { counted, fill, filled, textOf } from '../texts/fill';
import { CommandLine, CopyWord } from './Copy';
import { Fault, Skeleton } from './Notices';
import { Ago } from './Time';

const KINDS = ['mail', 'webhook', 'slack', 'teams', 'apprise'] as const;
type Kind = (typeof KINDS)[number];

export function Channels() {
  const list = useQuery(ask.channels);
  return (
    <>
      <h2 className="heading mt-7">{texts.title}</h2>
      <p className="max-w-[65ch] pt-2 text-sm text-muted">{texts.note}</p>
      <AddChannel />
      {list.error && <Fault error={list.error} retry={() => void list.refetch()} />}
      {!list.data && !list.error && <Skeleton rows={2} />}
      {list.data && list.data.items.length > 0 && (
        <table className="grid-table" aria-label={texts.list}>
          <thead>
            <tr>
              <th>{texts.name}</th>
              <th>{texts.address}</th>
              <th className="max-sm:hidden">{texts.told}</th>
              <th>
                <span className="sr-only">{texts.actions}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {list.data.items.map((channel) => (
              <Row key={channel.name} channel={channel} />
            ))}
          </tbody>
        </table>
      )}
      <History />
    </>
  );
}

/** What a channel is told, in words. */
export function told({ events, waitingSeconds, jobs }: Channel): string {
  const waits = waitingSeconds ? [counted(texts.waiting, Math.round(waitingSeconds / 60))] : [];
  const all = [...events.map((each) => texts.events[each]), ...waits].join(', ') || texts.jobFiles;
  return jobs === '*' ? all : fill(texts.ofJobs, { events: all, jobs });
}

function useChanged() {
  const client = useQueryClient();
  return async () => {
    await client.invalidateQueries({ queryKey: ask.channels.queryKey });
    await client.invalidateQueries({ queryKey: ask.notifications.queryKey });
  };
}

function Row({ channel }: { channel: Channel }) {
  const changed = useChanged();
  const at = `/account/notifications/${part(channel.name)}`;
  const test = useMutation({ mutationFn: () => call(`${at}/test`, { method: 'POST' }), onSuccess: changed });
  const remove = useMutation({ mutationFn: () => call(at, { method: 'DELETE' }), onSuccess: changed });
  const error = test.error ?? remove.error;
  return (
    <tr>
      <td>{channel.name}</td>
      <td className="break-all text-muted">{channel.address}</td>
      <td className="text-muted max-sm:hidden">{told(channel)}</td>
      <td className="text-right">
        {channel.verified ? (
          <button type="button" className="link" onClick={() => test.mutate()} disabled={test.isPending} aria-label={fill(texts.testNamed, { name: channel.name })}>
            {texts.test}
          </button>
        ) : (
          <Verify at={at} name={channel.name} />
        )}{' '}
        <button type="button" className="link !text-fail" onClick={() => remove.mutate()} disabled={remove.isPending} aria-label={fill(texts.removeNamed, { name: channel.name })}>
          {texts.remove}
        </button>
        {error && <Fault error={error} />}
      </td>
    </tr>
  );
}

function Verify({ at, name }: { at: string; name: string }) {
  const changed = useChanged();
  const [code, setCode] = useState('');
  const verify = useMutation({ mutationFn: () => call(`${at}/verify`, { method: 'POST', json: { code } }), onSuccess: changed });
  const resend = useMutation({ mutationFn: () => call(`${at}/code`, { method: 'POST' }), onSuccess: changed });
  const error = verify.error ?? resend.error;
  return (
    <form
      className="inline-flex flex-wrap items-center justify-end gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        verify.mutate();
      }}
    >
      <input className="field !w-28" required maxLength={50} aria-label={fill(texts.codeOf, { name })} placeholder={texts.code} value={code} onChange={(event) => setCode(event.target.value)} />
      <button type="submit" className="btn" disabled={verify.isPending}>
        {texts.verify}
      </button>
      <button type="button" className="link" onClick={() => resend.mutate()} disabled={resend.isPending}>
        {texts.another}
      </button>
      {error && <Fault error={error} />}
    </form>
  );
}

function AddChannel() {
  const changed = useChanged();
  const [name, setName] = useState('');
  const [kind, setKind] = useState<Kind>('mail');
  const [address, setAddress] = useState('');
  const add = useMutation({
    mutationFn: () => call<NewChannel>('/account/notifications', { method: 'POST', json: { name, kind, address } }),
    onSuccess: async () => {
      setAddress('');
      await changed();
    },
  });
  return (
    <>
      <form
        className="flex flex-wrap items-end gap-3 py-4"
        onSubmit={(event) => {
          event.preventDefault();
          add.mutate();
        }}
      >
        <label className="space-y-1">
          <span className="label block">{texts.channel}</span>
          <input className="field !w-36" required maxLength={63} value={name} onChange={(event) => setName(event.target.value)} />
        </label>
        <label className="space-y-1">
          <span className="label block">{texts.kind}</span>
          <select className="field !w-28" value={kind} onChange={(event) => setKind(event.target.value as Kind)}>
            {KINDS.map((each) => (
              <option key={each} value={each}>
                {texts.kinds[each]}
              </option>
            ))}
          </select>
        </label>
        <label className="space-y-1">
          <span className="label block">{kind === 'mail' ? texts.address : texts.url}</span>
          <input
            className="field !w-64"
            type={kind === 'mail' ? 'email' : 'password'}
            autoComplete={kind === 'mail' ? 'email' : 'off'}
            placeholder={kind === 'apprise' ? 'tgram://TOKEN/CHAT' : undefined}
            required
            maxLength={2000}
            value={address}
            onChange={(event) => setAddress(event.target.value)}
          />
        </label>
        <button type="submit" className="btn" disabled={add.isPending}>
          {texts.add}
        </button>
        <CommandLine line={`corral notifications add ${name ? JSON.stringify(name) : 'NAME'} ${kind}`} />
      </form>
      {add.error && <Fault error={add.error} />}
      {add.data && (
        <p role="status" className="mb-4 border-l-[3px] border-accent bg-accent-ground px-4 py-3 text-sm">
          {fill(texts.onItsWay, { address: add.data.address })} {add.data.signingKey && filled(texts.signed, { key: <CopyWord text={add.data.signingKey} /> })}
        </p>
      )}
    </>
  );
}

function History() {
  const { data } = useQuery(ask.notifications);
  if (!data || data.items.length === 0) return null;
  return (
    <details className="pt-3">
      <summary className="link cursor-pointer">{texts.sent}</summary>
      <table className="grid-table" aria-label={texts.sent}>
        <tbody>
          {data.items.map((each) => (
            <Sent key={each.id} message={each} />
          ))}
        </tbody>
      </table>
    </details>
  );
}

function Sent({ message }: { message: Notification }) {
  const bad = message.state === 'failed' || message.state === 'dropped';
  return (
    <tr>
      <td className="text-muted">
        <Ago at={message.at} />
      </td>
      <td className="max-sm:hidden">{message.channel}</td>
      <td>{message.subject}</td>
      <td className={bad ? 'text-fail' : 'text-muted'}>
        {message.error ? fill(texts.why, { state: textOf(texts.states, message.state), error: message.error }) : textOf(texts.states, message.state)}
      </td>
    </tr>
  );
}
