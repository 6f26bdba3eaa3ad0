/** The keyboard: which key does what, once for the handlers and for the list that `?` shows. */

import { useEffect, useRef } from 'react';
import type { keys } from '../texts/english/frame';

export interface Key {
  keys: string;
  /** The name of the text that says what it does. */
  does: keyof typeof keys;
}
export const KEYS: readonly Key[] = [
  { keys: 'Ctrl-K', does: 'command' },
  { keys: '/', does: 'search' },
  { keys: 'j', does: 'next' },
  { keys: 'k', does: 'previous' },
  { keys: 'Enter', does: 'open' },
  { keys: 'x', does: 'choose' },
  { keys: 'e', does: 'edit' },
  { keys: 'n', does: 'write' },
  { keys: 'c', does: 'submit' },
  { keys: 'g h', does: 'home' },
  { keys: 'g j', does: 'jobs' },
  { keys: 'g q', does: 'queues' },
  { keys: 'g l', does: 'line' },
  { keys: 'g n', does: 'nodes' },
  { keys: 'g m', does: 'alerts' },
  { keys: 'g b', does: 'usage' },
  { keys: 'g c', does: 'configuration' },
  { keys: 'g s', does: 'storages' },
  { keys: 'g u', does: 'users' },
  { keys: 'g a', does: 'account' },
  { keys: '1 – 7', does: 'tabs' },
  { keys: 't', does: 'theme' },
  { keys: '?', does: 'these' },
  { keys: 'Esc', does: 'leave' },
];

/** Whether the reader is typing, so that letters are letters. */
export function typing(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || !!target.closest('.xterm');
}

const SEQUENCE_MS = 900;
/** The key that begins every pair: after it no key stands for itself. */
const FIRST = 'g';

/** Calls `bindings['j']`, or `bindings['g h']` for two keys in a row. */
export function useKeys(bindings: Record<string, (event: KeyboardEvent) => void>): void {
  const current = useRef(bindings);
  useEffect(() => {
    current.current = bindings;
  });
  useEffect(() => {
    let before = { key: '', at: 0 };
    const listen = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
      if (document.querySelector('dialog[open]')) return;
      const both = `${before.key} ${event.key}`;
      const recent = event.timeStamp - before.at < SEQUENCE_MS;
      const found = recent && before.key === FIRST ? both : event.key;
      before = { key: event.key, at: event.timeStamp };
      current.current[found]?.(event);
    };
    window.addEventListener('keydown', listen);
    return () => window.removeEventListener('keydown', listen);
  }, []);
}

/**
 * Steps through rows by keys: the step chooses the row so many after the chosen one, which `shown` names, or the first one.
 *
 * Of two keys in a row the second may come before the page shows what the first one chose, so that is remembered.
 */
export function useRowSteps(rows: readonly string[], shown: string, choose: (row: string) => void): (by: number) => void {
  const chosen = useRef(shown);
  useEffect(() => {
    chosen.current = shown;
  }, [shown]);
  return (by) => {
    const at = rows.indexOf(chosen.current);
    const next = rows[at < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, at + by))];
    if (next === undefined) return;
    chosen.current = next;
    choose(next);
  };
}
