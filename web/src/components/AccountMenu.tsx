/** Who is signed in, the theme, password and tokens, and the way out. */

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { address, call } from '../api/client';
import * as ask from '../api/queries';
import { chosenTheme, chooseTheme, type Theme } from '../lib/theme';
import { frame, menu as texts } from '../texts/english/frame';
import { shared } from '../texts/english/shared';
import { fill, textOf } from '../texts/fill';

const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

export function AccountMenu({ onCommand }: { onCommand: () => void }) {
  const { data } = useQuery(ask.me);
  const [theme, setTheme] = useState(chosenTheme);
  const menu = useRef<HTMLDetailsElement>(null);
  const navigate = useNavigate();
  const client = useQueryClient();
  useEffect(() => {
    const close = (event: Event) => {
      const outside = event.type === 'keydown' ? (event as KeyboardEvent).key === 'Escape' : true;
      if (outside && menu.current?.open && !(event.type === 'click' && menu.current.contains(event.target as Node)))
        menu.current.open = false;
    };
    document.addEventListener('click', close);
    document.addEventListener('keydown', close);
    return () => {
      document.removeEventListener('click', close);
      document.removeEventListener('keydown', close);
    };
  }, []);
  const leave = async () => {
    const oidc = await client.fetchQuery(ask.oidc).catch(() => undefined);
    if (oidc?.enabled) return location.assign(address('/oidc/logout'));
    await call('/logout', { method: 'POST' });
    client.clear();
    await navigate({ to: '/sign-in' });
  };
  return (
    <details ref={menu} className="relative">
      <summary className="btn-bare list-none [&::-webkit-details-marker]:hidden" aria-label={fill(texts.account, { user: data?.user ?? '…' })}>
        <span className="max-w-24 truncate">{data?.user ?? '…'}</span>
        <svg viewBox="0 0 8 5" width="8" height="5" aria-hidden>
          <path d="m1 .5 3 3 3-3" fill="none" stroke="currentColor" strokeWidth="1.3" />
        </svg>
      </summary>
      <div className="absolute right-0 z-30 mt-1 w-60 rounded-[6px] border border-line-strong bg-raised p-3 text-sm shadow-xl">
        <p className="pb-2">
          <span className="font-medium">{data?.user}</span> <span className="text-muted">· {textOf(shared.roles, data?.role ?? '')}</span>
        </p>
        <fieldset className="flex border-y border-line py-2">
          <legend className="sr-only">{texts.theme}</legend>
          {THEMES.map((each) => (
            <label key={each} className="grow">
              <input
                type="radio"
                name="theme"
                className="peer sr-only"
                checked={theme === each}
                onChange={() => {
                  chooseTheme(each);
                  setTheme(each);
                }}
              />
              <span className="block cursor-pointer rounded-[3px] py-1 text-center text-muted peer-checked:bg-accent-ground peer-checked:text-accent peer-focus-visible:outline-2">
                {texts[each]}
              </span>
            </label>
          ))}
        </fieldset>
        <button
          type="button"
          className="mt-2 block w-full rounded-[3px] px-1 py-1 text-left hover:bg-sunken"
          onClick={() => {
            if (menu.current) menu.current.open = false;
            onCommand();
          }}
        >
          {frame.command} <kbd className="pl-1 font-mono text-xs text-muted">Ctrl K</kbd>
        </button>
        <Link to="/alerts" className="block rounded-[3px] px-1 py-1 hover:bg-sunken">
          {frame.alerts}
        </Link>
        <Link to="/usage" className="block rounded-[3px] px-1 py-1 hover:bg-sunken">
          {frame.usage}
        </Link>
        <Link to="/templates" className="block rounded-[3px] px-1 py-1 hover:bg-sunken">
          {texts.templates}
        </Link>
        <Link to="/storages" className="block rounded-[3px] px-1 py-1 hover:bg-sunken">
          {frame.storages}
        </Link>
        {data?.role === 'admin' && (
          <Link to="/users" className="block rounded-[3px] px-1 py-1 hover:bg-sunken">
            {frame.users}
          </Link>
        )}
        <Link to="/groups" className="block rounded-[3px] px-1 py-1 hover:bg-sunken">
          {data?.role === 'admin' ? texts.groups : texts.yourGroups}
        </Link>
        <Link to="/account" className=" block rounded-[3px] px-1 py-1 hover:bg-sunken">
          {texts.password}
        </Link>
        <button type="button" onClick={() => void leave()} className="block w-full rounded-[3px] px-1 py-1 text-left hover:bg-sunken">
          {texts.signOut}
        </button>
      </div>
    </details>
  );
}
