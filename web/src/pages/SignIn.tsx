/** Signing in: a one-time link is used by itself, everybody else has a name and a password, or an OpenID provider. */

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useLocation, useNavigate } from '@tanstack/react-router';
import { useEffect, useState, type FormEvent } from 'react';
import { ApiError, address, call } from '../api/client';
import * as ask from '../api/queries';
import { CommandLine } from '../components/Copy';
import { useTitle } from '../components/useTitle';
import { refusals, signIn as texts } from '../texts/english/signin';
import { fill, textOf } from '../texts/fill';

const route = getRouteApi('/sign-in');

/** The link in the address, taken out of it at once, so that it stays neither in the history nor on a screenshot. */
function takeLink(): string {
  const link = new URLSearchParams(location.hash.slice(1)).get('link') ?? '';
  if (link) history.replaceState(history.state, '', location.pathname + location.search);
  return link;
}

/** A path of this page; anything else (another site) is not followed. */
export function inside(next: string | undefined): string {
  return next && /^\/(?![/\\])/.test(next) ? next : '/';
}

/** What the server's reason for refusing a provider's answer means; an address may say none but those that have a text. */
const refusalOf = (code: string): string => (Object.hasOwn(refusals, code) ? textOf(refusals, code) : texts.refused);

export function SignIn() {
  const { next, refused } = route.useSearch();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(refused ? refusalOf(refused) : '');
  const notice = useLocation({ select: (location) => location.state.notice });
  const { data: oidc } = useQuery(ask.oidc);
  const navigate = useNavigate();
  const client = useQueryClient();
  useTitle(texts.title);

  const enter = async (json: Record<string, string>) => {
    setBusy(true);
    setProblem('');
    try {
      await call('/login', { method: 'POST', json });
      client.clear();
      await navigate({ href: inside(next) });
    } catch (error) {
      const already = 'link' in json && (await client.fetchQuery(ask.me).catch(() => null));
      if (already) await navigate({ href: inside(next) });
      else setProblem(error instanceof ApiError ? error.message : texts.failed);
    } finally {
      setBusy(false);
    }
  };
  useEffect(() => {
    const link = takeLink();
    if (link) void enter({ link });
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);

  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    void enter({ user: String(form.get('user')), password: String(form.get('password')) });
  };
  return (
    <main className="mx-auto flex min-h-dvh max-w-sm flex-col justify-center px-5 py-10">
      <h1 className="flex items-center gap-3 pb-7 text-xl font-semibold tracking-tight">
        <svg viewBox="0 0 16 16" width="26" height="26" aria-hidden className="text-accent">
          <path d="M1 5h14M1 10h14M4 2v12M12 2v12" stroke="currentColor" strokeWidth="1.8" fill="none" />
        </svg>
        {fill(texts.heading, { product: 'Corral' })}
      </h1>
      {notice && (
        <p role="status" className="mb-6 border-l-[3px] border-accent bg-accent-ground px-4 py-3 text-sm">
          {notice}
        </p>
      )}
      {oidc?.enabled && (
        <>
          <a href={address('/oidc/login', { next: inside(next) })} className="btn btn-main !h-10 w-full justify-center">
            {oidc.label}
          </a>
          <p className="flex items-center gap-3 py-5 text-sm text-muted before:h-px before:grow before:bg-line after:h-px after:grow after:bg-line">
            {texts.orPassword}
          </p>
        </>
      )}
      <form onSubmit={submit} className="space-y-4">
        <label className="block space-y-1">
          <span className="label">{texts.user}</span>
          <input name="user" autoComplete="username" required className="field !h-10" autoFocus />
        </label>
        <label className="block space-y-1">
          <span className="label">{texts.password}</span>
          <input name="password" type="password" autoComplete="current-password" required className="field !h-10" />
        </label>
        {problem && (
          <p role="alert" className="border-l-[3px] border-fail bg-fail-ground px-3 py-2 text-sm">
            {problem}
          </p>
        )}
        <button type="submit" className={`btn ${oidc?.enabled ? '' : 'btn-main'} !h-10 w-full justify-center`} disabled={busy}>
          {busy ? texts.entering : texts.enter}
        </button>
      </form>
      <div className="mt-8 border-t border-line pt-4 text-sm text-muted">
        <p>{texts.noPassword}</p>
        <CommandLine line="corral up" className="mt-2 -ml-1.5" />
        <br />
        <CommandLine line="corral users link NAME" className="-ml-1.5" />
      </div>
    </main>
  );
}
