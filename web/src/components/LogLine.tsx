/** One line of a log: the task it is of, its colours, and the words that were searched for. */

import { memo, type ReactNode } from 'react';
import { segments } from '../lib/ansi';
import type { Line } from '../lib/logbuffer';

/** The line that the server puts between what two attempts of a task printed. */
const MARK = /^\[corral: attempt \d+\.\d+ .* follows\]$/;
const PREFIX = /^[\w.-]+-\d+ \| /;

interface Props {
  line: Line;
  find: string;
  prefixed: boolean;
}

export const LogLine = memo(function LogLine({ line, find, prefixed }: Props) {
  const prefix = prefixed ? (PREFIX.exec(line.text)?.[0] ?? '') : '';
  if (!find && MARK.test(line.text.slice(prefix.length))) return wrapPrefix(prefix, <span className="text-wait">{line.text.slice(prefix.length)}</span>);
  if (!line.raw || find) return wrapPrefix(prefix, marked(line.text.slice(prefix.length), find));
  const rest = line.raw.slice(line.raw.startsWith(prefix) ? prefix.length : 0);
  const parts = segments(rest).map(({ text, marks }, at) => (
    <span key={at} className={marks.map((mark) => `log-${mark}`).join(' ')}>
      {text}
    </span>
  ));
  return wrapPrefix(prefix, parts);
});

function wrapPrefix(prefix: string, rest: ReactNode): ReactNode {
  return (
    <>
      {prefix && <span className="text-faint">{prefix}</span>}
      {rest}
    </>
  );
}

/** `text` with every occurrence of `find` marked. */
export function marked(text: string, find: string): ReactNode {
  if (!find) return text;
  const word = find.toLowerCase();
  const lower = text.toLowerCase();
  const parts: ReactNode[] = [];
  let at = 0;
  for (let hit = lower.indexOf(word); hit >= 0; hit = lower.indexOf(word, at)) {
    parts.push(text.slice(at, hit), <mark key={hit}>{text.slice(hit, hit + word.length)}</mark>);
    at = hit + word.length;
  }
  parts.push(text.slice(at));
  return parts;
}
