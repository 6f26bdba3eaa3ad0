import { submit as texts } from '../texts/english/submit';
import { fill } from '../texts/fill';
/** Which files an ignore file leaves out, by git's rules, as `corral submit` does (`corral/cli/code_archive.py`). */

export const IGNORE_FILES = ['.corralignore', '.gitignore'] as const;
const NEVER = new Set(['.git', '.hg', '.svn']);

/** The rules of one ignore file: what the last one that fits says, true to leave out, null where none fits. */
export type Rules = (path: string, folder: boolean) => boolean | null;

interface Rule {
  /** Fits a path, which ends in a slash where it is a folder's. */
  fits: RegExp;
  leavesOut: boolean;
}

export class BadIgnoreFile extends Error {}

/** Read the text of an ignore file. */
export function rulesOf(text: string): Rules {
  const rules = text.split(/\r\n|\r|\n/).flatMap((line) => readLine(line) ?? []);
  return (path, folder) => {
    for (let at = rules.length - 1; at >= 0; at--) {
      const rule = rules[at]!;
      if (rule.fits.test(folder ? `${path}/` : path)) return rule.leavesOut;
    }
    return null;
  };
}

/** Whether a name is left out whatever the ignore file says. */
export const never = (name: string): boolean => NEVER.has(name);

/** Whether the rules of the folders from the nearest to the root leave a path out; `base` is the folder of each. */
export function leftOut(path: string, folder: boolean, rules: readonly { base: string; rules: Rules }[]): boolean {
  for (let at = rules.length - 1; at >= 0; at--) {
    const { base, rules: own } = rules[at]!;
    const said = own(base === '' ? path : path.slice(base.length + 1), folder);
    if (said !== null) return said;
  }
  return false;
}

function readLine(line: string): Rule | null {
  let pattern = /\\ $/.test(line) ? line : line.trimEnd();
  if (pattern === '' || pattern === '/' || pattern.startsWith('#')) return null;
  const leavesOut = !pattern.startsWith('!');
  if (!leavesOut) pattern = pattern.slice(1);
  const foldersOnly = pattern.endsWith('/');
  if (foldersOnly) pattern = pattern.slice(0, -1);
  const anchored = pattern.includes('/');
  if (pattern.startsWith('/')) pattern = pattern.slice(1);
  if (pattern === '') return null;
  const parts = pattern.split('/');
  let source = anchored ? '^' : '^(?:.*/)?';
  parts.forEach((part, at) => {
    const last = at === parts.length - 1;
    if (part === '**') source += last ? '.*' : '(?:.*/)?';
    else source += segment(part, line) + (last ? '' : '/');
  });
  try {
    return { fits: new RegExp(`${source}${foldersOnly ? '/' : '/?'}$`, 'su'), leavesOut };
  } catch {
    throw new BadIgnoreFile(fill(texts.lineIgnoreFile, { line: JSON.stringify(line.slice(0, 80)) }));
  }
}

/** One segment of a pattern as a regular expression. */
function segment(part: string, line: string): string {
  let source = '';
  for (let at = 0; at < part.length; at++) {
    const sign = part[at]!;
    if (sign === '*') source += '[^/]*';
    else if (sign === '?') source += '[^/]';
    else if (sign === '[') {
      const end = endOfSet(part, at);
      if (end < 0) source += '\\[';
      else {
        source += setOf(part.slice(at + 1, end));
        at = end;
      }
    } else if (sign === '\\') {
      if (++at >= part.length) throw new BadIgnoreFile(fill(texts.lineIgnoreFileEnds, { line: JSON.stringify(line.slice(0, 80)) }));
      source += literal(part[at]!);
    } else source += literal(sign);
  }
  return source;
}

/** Where the set that begins at `begin` ends, -1 where it does not: its first sign may be the bracket itself. */
function endOfSet(part: string, begin: number): number {
  let at = begin + 1;
  if (part[at] === '!' || part[at] === '^') at++;
  if (part[at] === ']') at++;
  return part.indexOf(']', at);
}

function setOf(inside: string): string {
  const other = inside.startsWith('!') || inside.startsWith('^');
  const signs = (other ? inside.slice(1) : inside).replace(/\\(?=.)/gs, '').replace(/[\\[\]^&]/g, '\\$&');
  return other ? `[^/${signs}]` : `(?!/)[${signs}]`;
}

const literal = (sign: string): string => (/[.*+?^${}()|[\]\\/]/.test(sign) ? `\\${sign}` : sign);
