/** Terminal colours in logs: the common ones become classes, everything else that terminals obey is taken out. */

export interface Segment {
  text: string;
  /** Names for `log-*` classes, such as `red` and `bold`. */
  marks: string[];
}

const COLOURS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];
// CSI sequences, OSC strings (titles, links), and two-byte escapes.
const ESCAPES = /\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_=>()][0-9A-B]?)/g; // eslint-disable-line no-control-regex

/** A line without any escape. */
export function plain(line: string): string {
  return line.includes('\x1b') ? line.replace(ESCAPES, '') : line;
}

/** A line cut where its looks change. */
export function segments(line: string): Segment[] {
  const found: Segment[] = [];
  let marks = new Set<string>();
  let at = 0;
  for (const match of line.matchAll(ESCAPES)) {
    if (match.index > at) found.push({ text: line.slice(at, match.index), marks: [...marks] });
    at = match.index + match[0].length;
    if (match[2] === 'm') marks = dress(marks, match[1] ?? '');
  }
  if (at < line.length) found.push({ text: line.slice(at), marks: [...marks] });
  return found;
}

function dress(before: Set<string>, codes: string): Set<string> {
  let marks = new Set(before);
  const numbers = codes.split(/[;:]/).map(Number);
  for (let at = 0; at < numbers.length; at += 1) {
    const code = numbers[at] ?? 0;
    if (code === 0) marks = new Set();
    else if (code === 1) marks.add('bold');
    else if (code === 2) marks.add('dim');
    else if (code === 22) ['bold', 'dim'].forEach((each) => marks.delete(each));
    else if ((code >= 30 && code <= 39) || (code >= 90 && code <= 97)) {
      COLOURS.forEach((each) => marks.delete(each));
      const name = code === 39 ? undefined : COLOURS[code % 10];
      if (name) marks.add(name);
    }
    if (code === 38 || code === 48) at += numbers[at + 1] === 5 ? 2 : 4;
  }
  return marks;
}
