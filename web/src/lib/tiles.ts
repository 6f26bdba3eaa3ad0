/** What is written on a tile of the device map, and its name for those who do not see it. */

import { cut } from './format';

/** Widths of a letter of the tiles' two lines, in the widest of the fonts asked for. */
const BOLD = 7.3;
const PLAIN = 6.1;
const EDGES = 9;

/** The two lines of a tile of this width, cut where they do not fit. */
export function tileLines(name: string, below: string, width: number): [string, string] {
  const room = width - EDGES;
  return [cut(name, Math.floor(room / BOLD)), cut(below, Math.floor(room / PLAIN))];
}

interface Held {
  name: string;
  user: string;
  /** `guest`, `leaving`; shown in place of the user. */
  standing: readonly string[];
}

/** What stands below the job's name. */
export const belowOf = ({ user, standing }: Held) => (standing.length > 0 ? standing.join(', ') : user);

/** Who holds a tile. It begins with what is written on it, so that people who speak to their browser can say what they see. */
export function tileName(held: Held, lines: readonly [string, string] | null): string {
  if (lines === null) return [held.name, held.user, ...held.standing].join(', ');
  const below = belowOf(held);
  const more = [lines[0] === held.name ? '' : held.name, lines[1] === below ? '' : below, held.standing.length > 0 ? held.user : ''];
  return [...lines, ...more].filter(Boolean).join(', ');
}
