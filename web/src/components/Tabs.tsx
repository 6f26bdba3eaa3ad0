/** Links to pages that belong together, as tabs above each of them. */

import { Link, type LinkProps } from '@tanstack/react-router';
import { type ReactNode, useCallback, useEffect, useRef, useState } from 'react';

/** A page's path, and the word for it. */
export type Way = readonly [to: NonNullable<LinkProps['to']>, word: string];

export const TAB = {
  className: '-mb-px border-b-2 border-transparent px-3 py-2 text-sm whitespace-nowrap text-muted hover:text-text',
  activeProps: { className: '!border-accent !text-text', 'aria-current': 'page' },
} as const;

/** Whether tabs lie beyond the left and the right edge; less than a pixel is rounding. */
export function beyond({ scrollLeft, clientWidth, scrollWidth }: Pick<HTMLElement, 'scrollLeft' | 'clientWidth' | 'scrollWidth'>) {
  return { left: scrollLeft > 1, right: scrollLeft + clientWidth < scrollWidth - 1 };
}

const NOTHING = { left: false, right: false };
const EDGE = 'pointer-events-none absolute inset-y-0 flex w-8 items-center from-ground to-transparent text-base text-text';

/** A row of tabs. On a narrow screen it scrolls, an arrow at an edge shows that there are more, and the present tab is in view. */
export function TabBar({ label, className = '', children }: { label: string; className?: string; children: ReactNode }) {
  const nav = useRef<HTMLElement>(null);
  const [more, setMore] = useState(NOTHING);
  const look = useCallback(() => {
    const found = nav.current ? beyond(nav.current) : NOTHING;
    setMore((before) => (before.left === found.left && before.right === found.right ? before : found));
  }, []);
  useEffect(() => {
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ inline: 'nearest', block: 'nearest' });
    look();
    const observer = new ResizeObserver(look);
    if (nav.current) observer.observe(nav.current);
    return () => observer.disconnect();
  }, [look]);
  useEffect(look); // tabs may come and go
  return (
    <div className={`relative ${className}`}>
      <nav aria-label={label} ref={nav} onScroll={look} className="flex scroll-px-8 gap-1 overflow-x-auto border-b border-line-strong">
        {children}
      </nav>
      {more.left && (
        <span aria-hidden data-more="left" className={`${EDGE} left-0 bg-linear-to-r`}>
          ‹
        </span>
      )}
      {more.right && (
        <span aria-hidden data-more="right" className={`${EDGE} right-0 justify-end bg-linear-to-l`}>
          ›
        </span>
      )}
    </div>
  );
}

export function Tabs({ label, ways }: { label: string; ways: readonly Way[] }) {
  return (
    <TabBar label={label}>
      {ways.map(([to, word]) => (
        <Link key={to} to={to} activeOptions={{ exact: true, includeSearch: false }} {...TAB}>
          {word}
        </Link>
      ))}
    </TabBar>
  );
}
