/** Rows must not jump away under a reader's hand: while held, known rows keep their places and new ones wait outside. */

export interface Steady<Item> {
  rows: Item[];
  /** How many new rows are being kept back. */
  held: number;
}

/**
 * What to show of `fresh`, given the ids shown before. Not held: `fresh` as it is. Held: the shown rows in their old
 * order with their new contents (a row that is gone is dropped), then what comes after the last of them.
 */
export function steady<Item extends { id: string }>(
  shown: readonly string[],
  fresh: readonly Item[],
  held: boolean,
): Steady<Item> {
  if (!held || shown.length === 0) return { rows: [...fresh], held: 0 };
  const byId = new Map(fresh.map((item) => [item.id, item]));
  const kept = shown.map((id) => byId.get(id)).filter((item) => item !== undefined);
  const known = new Set(shown);
  let lastKnown = -1;
  fresh.forEach((item, at) => {
    if (known.has(item.id)) lastKnown = at;
  });
  const tail = fresh.slice(lastKnown + 1);
  const before = fresh.slice(0, lastKnown + 1).filter((item) => !known.has(item.id));
  return { rows: [...kept, ...tail], held: before.length };
}
