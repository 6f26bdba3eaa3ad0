/** A line to copy: the command that does what the page does, or an id. */

import { useEffect, useState } from 'react';
import { shared } from '../texts/english/shared';
import { fill } from '../texts/fill';

function useCopied(): [boolean, (text: string) => void] {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [copied]);
  return [copied, (text) => void write(text).then(() => setCopied(true))];
}

/** The clipboard of a page without TLS is only reachable by a selected text. */
async function write(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

export function CommandLine({ line, className = '' }: { line: string; className?: string }) {
  const [copied, copy] = useCopied();
  return (
    <button
      type="button"
      onClick={() => copy(line)}
      title={fill(shared.copyLine, { line })}
      className={`group inline-flex max-w-full min-w-0 items-center gap-2 rounded-[3px] px-1.5 py-0.5 text-left font-mono text-xs text-muted hover:bg-sunken hover:text-text ${className}`}
    >
      <span aria-hidden className="text-faint select-none">
        $
      </span>
      <span className="truncate">{line}</span>
      <span aria-live="polite" className="text-2xs whitespace-nowrap text-accent">
        {copied ? shared.copied : <span className="font-sans underline underline-offset-2">{shared.copy}</span>}
      </span>
    </button>
  );
}

export function CopyWord({ text }: { text: string }) {
  const [copied, copy] = useCopied();
  return (
    <button
      type="button"
      onClick={() => copy(text)}
      title={shared.copyText}
      className="rounded-[3px] px-1 font-mono text-xs text-muted hover:bg-sunken hover:text-text"
    >
      {text}
      {copied && <span className="pl-1.5 font-sans text-accent">{shared.copied}</span>}
    </button>
  );
}
