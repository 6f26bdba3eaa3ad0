/** A flame graph as rectangles: which frame lies within which, what is drawn of a part, and where a key leads. */

import type { ProfileFrame } from '../api/types';

/** A frame with its place in the tree; frames are known by their number in the list. */
export interface Flame extends ProfileFrame {
  at: number;
  parent: number;
  below: number[];
}

/** A flame as it is drawn: left and width are shares of the picture. */
export interface Drawn {
  flame: Flame;
  left: number;
  width: number;
}

/** Frames narrower than this share of the picture are not drawn. */
const NARROWEST = 0.0015;

/** The frames with their parents; they come each before those below it. */
export function flamesOf(frames: readonly ProfileFrame[]): Flame[] {
  const made: Flame[] = frames.map((frame, at) => ({ ...frame, at, parent: -1, below: [] }));
  const path: number[] = [];
  for (const flame of made) {
    path.length = flame.depth;
    const parent = made[path[flame.depth - 1] ?? -1];
    if (parent) {
      flame.parent = parent.at;
      parent.below.push(flame.at);
    }
    path[flame.depth] = flame.at;
  }
  return made;
}

/** What is drawn when `top` fills the picture: those that called it, itself, and what it called. */
export function drawn(flames: readonly Flame[], top: Flame): Drawn[] {
  const callers: Drawn[] = [];
  for (let each = flames[top.parent]; each; each = flames[each.parent]) callers.unshift({ flame: each, left: 0, width: 1 });
  const end = top.begin + top.samples;
  const shown = flames
    .filter((each) => each.depth >= top.depth && each.begin >= top.begin && each.begin + each.samples <= end)
    .map((flame) => ({ flame, left: (flame.begin - top.begin) / top.samples, width: flame.samples / top.samples }))
    .filter(({ width }) => width >= NARROWEST);
  return [...callers, ...shown];
}

/** The frame to which an arrow key leads from another one; the same where there is none. */
export function next(shown: readonly Drawn[], from: Flame, key: string): Flame {
  const flames = shown.map(({ flame }) => flame);
  if (key === 'Home') return flames[0] ?? from;
  if (key === 'ArrowUp') return flames.find((each) => each.at === from.parent) ?? from;
  if (key === 'ArrowDown') return flames.find((each) => each.parent === from.at) ?? from;
  const row = flames.filter((each) => each.depth === from.depth);
  const at = row.findIndex((each) => each.at === from.at);
  if (key === 'ArrowRight') return row[at + 1] ?? from;
  if (key === 'ArrowLeft') return row[at - 1] ?? from;
  return from;
}

/** A colour's hue between red and yellow, the same for the same name. */
export function hueOf(name: string): number {
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 9973;
  return 25 + (sum % 75);
}
