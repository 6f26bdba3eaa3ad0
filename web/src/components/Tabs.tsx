/** Links to pages that belong together, as tabs above each of them. */

import { Link, type LinkProps } from '@tanstack/react-router';

/** A page's path, and the word for it. */
export type Way = readonly [to: NonNullable<LinkProps['to']>, word: string];

/** On a narrow screen the present page's tab may lie beyond the edge. */
export function showPresent(nav: HTMLElement | null) {
  nav?.querySelector('[aria-current]')?.scrollIntoView({ inline: 'nearest', block: 'nearest' });
}

export function Tabs({ label, ways }: { label: string; ways: readonly Way[] }) {
  return (
    <nav aria-label={label} ref={showPresent} className="flex gap-1 overflow-x-auto border-b border-line-strong">
      {ways.map(([to, word]) => (
        <Link
          key={to}
          to={to}
          activeOptions={{ exact: true, includeSearch: false }}
          className="-mb-px border-b-2 border-transparent px-3 py-2 text-sm whitespace-nowrap text-muted hover:text-text"
          activeProps={{ className: '!border-accent !text-text', 'aria-current': 'page' }}
        >
          {word}
        </Link>
      ))}
    </nav>
  );
}
