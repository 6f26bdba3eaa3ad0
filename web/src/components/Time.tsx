/** Times that run on by themselves: one clock for the whole page, relative on the face, absolute on hover. */

import { useSyncExternalStore } from 'react';
import { serverNow } from '../lib/clock';
import { absolute, ago, between, duration } from '../lib/time';
import { time } from '../texts/english/shared';
import { fill } from '../texts/fill';

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** The same through a second, as React asks for it several times while it draws. */
const nowInSeconds = () => Math.floor(serverNow() / 1000) * 1000;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The server's time in whole seconds, once a second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, nowInSeconds);
}

export function Ago({ at }: { at: string | null }) {
  const current = useNow();
  if (!at) return <span className="text-faint">–</span>;
  return (
    <time dateTime={at} title={absolute(at)} className="whitespace-nowrap">
      {ago(at, Math.max(current, Date.parse(at)))}
    </time>
  );
}

/** How long until a time that is to come. */
export function Until({ at }: { at: string }) {
  const current = useNow();
  return (
    <time dateTime={at} title={absolute(at)} className="whitespace-nowrap">
      {fill(time.until, { time: duration(Math.max(0, Math.ceil((Date.parse(at) - current) / 1000))) })}
    </time>
  );
}

/** From one time to another, or until now while the end has not come. */
export function Span({ from, to }: { from: string | null; to: string | null }) {
  const current = useNow();
  if (!from) return <span className="text-faint">–</span>;
  const seconds = between(from, to ?? Math.max(current, Date.parse(from)));
  const title = to ? `${absolute(from)} – ${absolute(to)}` : fill(time.going, { from: absolute(from) });
  return (
    <time dateTime={from} title={title} className="whitespace-nowrap">
      {duration(to ? seconds : Math.floor(seconds))}
    </time>
  );
}

/** Spans of time that are over, in seconds, and one that goes on. */
export function Sum({ seconds, since }: { seconds: number; since: string | null }) {
  const current = useNow();
  const going = since ? Math.max(0, between(since, Math.max(current, Date.parse(since)))) : 0;
  return <span className="whitespace-nowrap">{duration(since ? Math.floor(seconds + going) : seconds)}</span>;
}
