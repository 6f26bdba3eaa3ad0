/** What differs between two texts: a unified diff as rows that can be drawn, and the one part that was replaced. */

export type DiffRow =
  | { kind: 'same' | 'gone' | 'came'; text: string; before: number | null; after: number | null }
  | { kind: 'gap'; text: string; before: null; after: null };

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

/** The rows of a unified diff; its two heading lines are left out, hunks are parted by a gap. */
export function diffRows(diff: string): DiffRow[] {
  const rows: DiffRow[] = [];
  let [before, after] = [0, 0];
  let inside = false;
  for (const line of diff.split('\n')) {
    const hunk = HUNK.exec(line);
    if (hunk) {
      if (inside) rows.push({ kind: 'gap', text: '⋯', before: null, after: null });
      inside = true;
      [before, after] = [Number(hunk[1]), Number(hunk[2])];
    } else if (inside && line) {
      const text = line.slice(1);
      if (line.startsWith('-')) rows.push({ kind: 'gone', text, before: before++, after: null });
      else if (line.startsWith('+')) rows.push({ kind: 'came', text, before: null, after: after++ });
      else rows.push({ kind: 'same', text, before: before++, after: after++ });
    }
  }
  return rows;
}

/** How many lines came and how many went. */
export function counted(rows: readonly DiffRow[]): { came: number; gone: number } {
  return {
    came: rows.filter((row) => row.kind === 'came').length,
    gone: rows.filter((row) => row.kind === 'gone').length,
  };
}

/** The part of `before` in whose place another text makes it `after`; null where they are equal. */
export function changeBetween(before: string, after: string): { from: number; to: number; insert: string } | null {
  if (before === after) return null;
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  return { from: head, to: before.length - tail, insert: after.slice(head, after.length - tail) };
}
