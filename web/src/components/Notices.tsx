/** What a page shows when it has nothing to show: loading, empty, refused, each saying what comes next. */

import type { ReactNode } from 'react';
import { ApiError } from '../api/client';
import { shared } from '../texts/english/shared';
import { CommandLine } from './Copy';

export function Skeleton({ rows = 6, height = 14 }: { rows?: number; height?: number }) {
  return (
    <div role="status" aria-label={shared.loading} className="space-y-3 py-2">
      {Array.from({ length: rows }, (_, at) => (
        <div key={at} className="skeleton" style={{ height, width: `${92 - ((at * 37) % 45)}%` }} />
      ))}
    </div>
  );
}

export function Empty({ title, children, line }: { title: string; children?: ReactNode; line?: string }) {
  return (
    <div className="px-2.5 py-8 text-sm text-muted">
      <p className="text-base font-medium text-text">{title}</p>
      {children && <div className="max-w-[60ch] pt-1">{children}</div>}
      {line && <CommandLine line={line} className="mt-3 -ml-1.5 border border-line" />}
    </div>
  );
}

export function Fault({ error, retry }: { error: unknown; retry?: () => void }) {
  return (
    <div role="alert" title={error instanceof ApiError ? error.code : undefined} className="my-3 border-l-[3px] border-fail bg-fail-ground px-4 py-3 text-sm">
      <p className="text-text">{error instanceof Error ? error.message : shared.wrong}</p>
      {retry && (
        <button type="button" className="link mt-1 text-xs" onClick={retry}>
          {shared.again}
        </button>
      )}
    </div>
  );
}
