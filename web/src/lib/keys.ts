/** The keyboard: which key does what, once for the handlers and for the list that `?` shows. */

import { useEffect, useRef } from 'react';

export interface Key {
  keys: string;
  does: string;
}
export const KEYS: readonly Key[] = [
  { keys: 'Ctrl-K', does: 'Go to a page, job, queue or node, or do something with a job' },
  { keys: '/', does: 'Search' },
  { keys: 'j', does: 'Next row' },
  { keys: 'k', does: 'Previous row' },
  { keys: 'Enter', does: 'Open the row' },
  { keys: 'x', does: 'Choose the job, to stop or tag several' },
  { keys: 'e', does: 'Edit the document, or move the shares of queues' },
  { keys: 'n', does: 'Write a new document, make a user, group or silence' },
  { keys: 'c', does: 'Submit a job' },
  { keys: 'g h', does: 'Go to what is yours (Home)' },
  { keys: 'g j', does: 'Go to the jobs' },
  { keys: 'g q', does: 'Go to the queues' },
  { keys: 'g l', does: 'Go to the waiting list' },
  { keys: 'g n', does: 'Go to the nodes' },
  { keys: 'g m', does: 'Go to the alerts' },
  { keys: 'g b', does: 'Go to usage and budgets' },
  { keys: 'g c', does: 'Go to the configuration' },
  { keys: 'g s', does: 'Go to the storages' },
  { keys: 'g u', does: 'Go to users and groups' },
  { keys: 'g a', does: 'Go to your account' },
  { keys: '1 – 7', does: 'Overview, log, events, document, terminal, profiles, outputs of a job' },
  { keys: 't', does: 'Dark or light' },
  { keys: '?', does: 'These keys' },
  { keys: 'Esc', does: 'Leave a field, close a window' },
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
