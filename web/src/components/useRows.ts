/** Draws only those rows of a long table that are near the window; a short one is drawn whole. */

import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useLayoutEffect, useRef, useState, type RefObject } from 'react';

/** A table of no more rows is drawn whole, so that the browser's own search finds them all. */
const FEW = 200;
const ROW = 37;
const BEYOND = 15;

export interface Rows {
  table: RefObject<HTMLTableElement | null>;
  /** The numbers of the rows to draw. */
  shown: number[];
  /** The height of what is left out above and below. */
  above: number;
  below: number;
  /** Measures a row that is drawn; it has `data-index`. */
  measure: ((row: Element | null) => void) | undefined;
}

export function useRows(count: number, selected: number): Rows {
  const table = useRef<HTMLTableElement>(null);
  const [top, setTop] = useState(0);
  const windowed = count > FEW;
  useLayoutEffect(() => {
    if (windowed && table.current) setTop(table.current.getBoundingClientRect().top + scrollY);
  }, [windowed, count]);
  const rows = useWindowVirtualizer({ count: windowed ? count : 0, estimateSize: () => ROW, overscan: BEYOND, scrollMargin: top });
  useEffect(() => {
    if (windowed && selected >= 0) rows.scrollToIndex(selected, { align: 'auto' });
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [windowed, selected]);
  if (!windowed) return { table, shown: Array.from({ length: count }, (_, at) => at), above: 0, below: 0, measure: undefined };
  const items = rows.getVirtualItems();
  return {
    table,
    shown: items.map(({ index }) => index),
    above: (items[0]?.start ?? top) - top,
    below: rows.getTotalSize() - ((items.at(-1)?.end ?? top) - top),
    measure: rows.measureElement,
  };
}
