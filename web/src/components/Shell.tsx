/** The frame of every page: one bar with the ways, the account and the state of the connection. */

import { useQuery } from '@tanstack/react-query';
import { Link, Outlet, useLocation, useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useLayoutEffect, useState, type ReactNode } from 'react';
import { Live, useConnected } from '../api/live';
import * as ask from '../api/queries';
import { KEYS, useKeys } from '../lib/keys';
import { chooseTheme, shownTheme } from '../lib/theme';
import { frame, keys as keyTexts } from '../texts/english/frame';
import { fill } from '../texts/fill';
import { AccountMenu } from './AccountMenu';
import { AlertCount, useFiring } from './AlertCount';
import { Dialog } from './Dialog';
import { SessionEnded } from './SessionEnded';
import { Troubles } from './Troubles';

const Palette = lazy(() => import('./Palette'));
const JobDialog = lazy(() => import('./JobActions').then(({ JobDialog }) => ({ default: JobDialog })));

export function Shell() {
  return (
    <Live>
      <Frame />
    </Live>
  );
}

function Frame() {
  const navigate = useNavigate();
  const [help, setHelp] = useState(false);
  const [commanding, setCommanding] = useState(false);
  const [acting, setActing] = useState<{ action: string; id: string } | null>(null);
  useCommandKey(() => setCommanding(true));
  const admin = useQuery(ask.me).data?.role === 'admin';
  useKeys({
    '?': () => setHelp(true),
    'g h': () => void navigate({ to: '/home' }),
    'g j': () => void navigate({ to: '/' }),
    'g q': () => void navigate({ to: '/queues' }),
    'g l': () => void navigate({ to: '/line' }),
    'g n': () => void navigate({ to: '/nodes' }),
    'g m': () => void navigate({ to: '/alerts' }),
    'g b': () => void navigate({ to: '/usage' }),
    'g c': () => void navigate({ to: '/configuration' }),
    'g s': () => void navigate({ to: '/storages' }),
    'g u': () => void navigate({ to: admin ? '/users' : '/groups' }),
    'g a': () => void navigate({ to: '/account' }),
    c: () => void navigate({ to: '/submit' }),
    t: () => chooseTheme(shownTheme() === 'dark' ? 'light' : 'dark'),
  });
  return (
    <>
      <a href="#main" className="sr-only focus:not-sr-only focus:absolute focus:p-2">
        {frame.skip}
      </a>
      <header className="sticky top-0 z-20 border-b border-line bg-ground">
        <div className="mx-auto flex h-12 max-w-[1680px] items-center gap-0.5 px-2 min-[430px]:gap-1 min-[430px]:px-3 sm:gap-2 sm:px-5">
          <Link to="/home" className="flex items-center gap-2 pr-1 font-semibold tracking-tight sm:pr-4" aria-label={fill(frame.home, { product: 'Corral' })} title={frame.homeTitle}>
            <Mark />
            <span className="max-[430px]:hidden">Corral</span>
          </Link>
          <nav aria-label={frame.main} className="flex items-center">
            <Way to="/">{frame.jobs}</Way>
            <Way to="/queues" also={['/line', '/receipts', '/what-if', '/policy-shadow', '/estimates']}>
              {frame.queues}
            </Way>
            <Way to="/nodes" also={['/timeline', '/benchmarks', '/server']}>
              {frame.nodes}
            </Way>
            <AlertsWay />
            <Way to="/usage" also={['/efficiency', '/fairness', '/idle']} narrow="lg">
              {frame.usage}
            </Way>
            <Way to="/configuration" short={frame.config}>
              {frame.configuration}
            </Way>
            <Way to="/storages" narrow="lg">
              {frame.storages}
            </Way>
            {admin && (
              <Way to="/users" also={['/users/batch', '/groups']} narrow="lg">
                {frame.users}
              </Way>
            )}
          </nav>
          <span className="grow" />
          <Connection />
          <button type="button" className="btn-bare max-lg:hidden" onClick={() => setCommanding(true)} aria-label={fill(frame.commandKey, { keys: 'Ctrl K' })}>
            <kbd className="font-mono text-xs">Ctrl K</kbd>
          </button>
          <button type="button" className="btn-bare max-sm:hidden" onClick={() => setHelp(true)} aria-label={frame.keys}>
            <kbd className="font-mono">?</kbd>
          </button>
          <Link to="/submit" className="btn btn-main">
            {frame.submit}
          </Link>
          <AccountMenu onCommand={() => setCommanding(true)} />
        </div>
      </header>
      <Troubles />
      <SessionEnded />
      <main id="main" className="mx-auto max-w-[1680px] px-3 pb-16 sm:px-5">
        <Outlet />
      </main>
      {commanding && (
        <Suspense fallback={null}>
          <Palette onClose={() => setCommanding(false)} onAct={(action, id) => setActing({ action, id })} />
        </Suspense>
      )}
      {acting && (
        <Suspense fallback={null}>
          <JobDialog {...acting} onClose={() => setActing(null)} />
        </Suspense>
      )}
      {help && (
        <Dialog title={frame.keys} onClose={() => setHelp(false)}>
          <dl className="grid grid-cols-[6rem_1fr] gap-y-1.5 text-sm">
            {KEYS.map(({ keys, does }) => (
              <div key={keys} className="contents">
                <dt>
                  <kbd className="font-mono text-muted">{keys}</kbd>
                </dt>
                <dd>{keyTexts[does]}</dd>
              </div>
            ))}
          </dl>
        </Dialog>
      )}
    </>
  );
}

/** Ctrl-K, also while the reader types; a window that is open keeps its keys, and so does a terminal. */
function useCommandKey(open: () => void): void {
  useLayoutEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      if (document.querySelector('dialog[open]') || (event.target as Element).closest?.('.xterm')) return;
      event.preventDefault();
      open();
    };
    window.addEventListener('keydown', listen, true);
    return () => window.removeEventListener('keydown', listen, true);
  });
}

/** On a narrow screen it is there while something fires, as the number alone; the account's menu always has it. */
function AlertsWay() {
  const { firing, grave } = useFiring();
  return (
    <Way to="/alerts" narrow={firing > 0 ? 'shown' : 'lg'}>
      <span className="max-lg:sr-only">{frame.alerts}</span>
      <AlertCount firing={firing} grave={grave} />
    </Way>
  );
}

interface WayProps {
  to: '/' | '/queues' | '/nodes' | '/alerts' | '/usage' | '/configuration' | '/storages' | '/users';
  /** Other pages that belong to it. */
  also?: readonly string[];
  /** What stands there on a narrow screen. */
  short?: string;
  /** Whether it is shown on narrow screens, or stands in the account's menu alone below a width. */
  narrow?: 'shown' | 'lg';
  children: ReactNode;
}

function Way({ to, also = [], short, narrow = 'shown', children }: WayProps) {
  const here = useLocation({ select: ({ pathname }) => also.includes(pathname) || (to !== '/' && pathname.startsWith(`${to}/`)) });
  return (
    <Link
      to={to}
      activeOptions={{ exact: true, includeSearch: false }}
      className={`${narrow === 'lg' ? 'max-lg:hidden ' : ''}flex h-12 items-center border-b-2 px-1.5 text-sm hover:text-text min-[430px]:px-2.5 ${here ? 'border-accent text-text' : 'border-transparent text-muted'}`}
      activeProps={{ className: '!border-accent !text-text', 'aria-current': 'page' }}
    >
      {short ? <span className="sm:hidden">{short}</span> : children}
      {short && <span className="max-sm:hidden">{children}</span>}
    </Link>
  );
}

function Connection() {
  const connected = useConnected();
  if (connected) return null;
  return (
    <span
      role="status"
      className="text-xs whitespace-nowrap text-wait max-lg:absolute max-lg:text-2xs max-lg:top-full max-lg:right-3 max-lg:rounded-b-[4px] max-lg:border max-lg:border-t-0 max-lg:border-line max-lg:bg-ground max-lg:px-2"
      title={frame.lostTitle}
    >
      {frame.lost}
    </span>
  );
}

function Mark() {
  return (
    <svg viewBox="0 0 16 16" width="18" height="18" aria-hidden className="text-accent">
      <path d="M1 5h14M1 10h14M4 2v12M12 2v12" stroke="currentColor" strokeWidth="1.8" fill="none" />
    </svg>
  );
}
