/** A figure as things are and with the changes; only one if they are equal. */

import { shared } from '../texts/english/shared';

export function Both({ before, after, changed = true }: { before: string; after: string; changed?: boolean }) {
  if (!changed || before === after) return <>{after}</>;
  return (
    <>
      <span className="text-muted">{before}</span>
      <span aria-hidden className="px-1 text-faint">
        →
      </span>
      <span className="sr-only">{shared.then}</span>
      <span>{after}</span>
    </>
  );
}
