/** A unified diff as rows that can be drawn: what went, what came, what stayed, and the numbers of its lines. */

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
