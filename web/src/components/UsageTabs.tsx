/** The pages about use: who used how much, and which devices are held and not used. */

import { Link } from '@tanstack/react-router';

const WAYS = [
  ['/usage', 'Use and budgets'],
  ['/efficiency', 'Efficiency'],
  ['/fairness', 'Fairness'],
  ['/idle', 'Idle devices'],
] as const;

/** On a narrow screen the present page's tab may lie beyond the edge. */
function showPresent(nav: HTMLElement | null) {
  nav?.querySelector('[aria-current]')?.scrollIntoView({ inline: 'nearest', block: 'nearest' });
}

export function UsageTabs() {
  return (
    <nav aria-label="Usage" ref={showPresent} className="flex gap-1 overflow-x-auto border-b border-line-strong">
      {WAYS.map(([to, word]) => (
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
