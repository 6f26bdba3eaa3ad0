/** Markdown as plain data, which the page draws itself: HTML in it stays text, so that nothing of it can run. */

export type Inline =
  | { kind: 'text'; text: string }
  | { kind: 'code'; text: string }
  | { kind: 'strong'; parts: Inline[] }
  | { kind: 'em'; parts: Inline[] }
  | { kind: 'link'; address: string; parts: Inline[] }
  | { kind: 'picture'; address: string; text: string }
  | { kind: 'break' };

export type Block =
  | { kind: 'heading'; level: number; parts: Inline[] }
  | { kind: 'paragraph'; parts: Inline[] }
  | { kind: 'quote'; parts: Inline[] }
  | { kind: 'list'; ordered: boolean; start: number; items: Inline[][] }
  | { kind: 'table'; head: Inline[][]; rows: Inline[][][] }
  | { kind: 'code'; text: string }
  | { kind: 'rule' };

/** Within a list a fence is indented like its item. What follows backquotes holds none, else they are code within a line. */
const FENCE = /^(\s*)(`{3,}(?=[^`]*$)|~{3,})/;
const HEADING = /^\s{0,3}(#{1,6})\s+(\S.*)$/;
const ITEM = /^\s*(?:[-*+]|(\d+)[.)])\s+(.*)$/;
const RULE = /^\s{0,3}(?:-\s*){3,}$|^\s{0,3}(?:\*\s*){3,}$|^\s{0,3}(?:_\s*){3,}$/;
const QUOTE = /^\s{0,3}>\s?(.*)$/;
/** A longer text is cut: a page draws no book. */
const LONGEST = 100_000;

export function blocks(source: string): Block[] {
  const lines = source.slice(0, LONGEST).replaceAll('\r\n', '\n').split('\n');
  const found: Block[] = [];
  for (let at = 0; at < lines.length; ) at = block(lines, at, found);
  return found;
}

/** Reads the block that begins at a line; returns the line after it. */
function block(lines: string[], at: number, found: Block[]): number {
  const line = lines[at]!;
  const fence = FENCE.exec(line);
  const heading = HEADING.exec(line);
  if (fence) return code(lines, at + 1, fence, found);
  if (!line.trim()) return at + 1;
  if (RULE.test(line)) found.push({ kind: 'rule' });
  else if (heading) found.push({ kind: 'heading', level: heading[1]!.length, parts: inline(title(heading[2]!)) });
  else if (ITEM.test(line)) return items(lines, at, found);
  else if (isTable(lines, at)) return table(lines, at, found);
  else return paragraph(lines, at, found);
  return at + 1;
}

/** A heading without the marks that may close it. */
function title(text: string): string {
  const words = text.trim().split(/\s/);
  if (words.length > 1 && /^#+$/.test(words.at(-1)!)) words.pop();
  return words.join(' ').trim();
}

function code(lines: string[], begin: number, [, indent, fence]: RegExpExecArray, found: Block[]): number {
  let end = begin;
  while (end < lines.length && !lines[end]!.trim().startsWith(fence!)) end += 1;
  const text = lines.slice(begin, end).map((line) => outdented(line, indent!.length));
  found.push({ kind: 'code', text: text.join('\n') });
  return end + 1;
}

/** A line without the spaces by which the fence above it is indented. */
function outdented(line: string, most: number): string {
  let from = 0;
  while (from < most && /\s/.test(line.charAt(from))) from += 1;
  return line.slice(from);
}

/** The texts of the cells of a line of a table. */
function cells(line: string): string[] {
  const inner = line.trim().replace(/^\|/, '');
  const found = inner.split(/(?<!\\)\|/);
  if (found.length > 1 && !found.at(-1)!.trim()) found.pop();
  return found.map((each) => each.trim());
}

/** Whether a line of names begins a table: the next one has as many cells, of dashes. */
function isTable(lines: string[], at: number): boolean {
  const [head, marks] = [lines[at]!, lines[at + 1] ?? ''];
  if (!head.includes('|') || !marks.includes('|')) return false;
  const dashes = cells(marks);
  return dashes.every((each) => /^:?-+:?$/.test(each)) && cells(head).length === dashes.length;
}

function table(lines: string[], begin: number, found: Block[]): number {
  const head = cells(lines[begin]!);
  const rows: Inline[][][] = [];
  let at = begin + 2;
  for (; at < lines.length && lines[at]!.includes('|'); at += 1) rows.push(cells(lines[at]!).slice(0, head.length).map((each) => inline(each)));
  found.push({ kind: 'table', head: head.map((each) => inline(each)), rows });
  return at;
}

function items(lines: string[], begin: number, found: Block[]): number {
  const texts: string[] = [];
  let at = begin;
  for (; at < lines.length && lines[at]!.trim() && !FENCE.test(lines[at]!); at += 1) {
    const item = ITEM.exec(lines[at]!);
    if (item) texts.push(item[2]!);
    else texts.push(`${texts.pop() ?? ''} ${lines[at]!.trim()}`);
  }
  const number = ITEM.exec(lines[begin]!)?.[1];
  found.push({ kind: 'list', ordered: number !== undefined, start: Math.min(Number(number ?? 1), LONGEST), items: texts.map((each) => inline(each)) });
  return at;
}

function paragraph(lines: string[], begin: number, found: Block[]): number {
  const quoted = QUOTE.test(lines[begin]!);
  const texts: string[] = [];
  let at = begin;
  for (; at < lines.length && lines[at]!.trim(); at += 1) {
    const line = lines[at]!;
    if (at > begin && (isTable(lines, at) || FENCE.test(line) || HEADING.test(line) || ITEM.test(line) || QUOTE.test(line) !== quoted)) break;
    texts.push(QUOTE.exec(line)?.[1] ?? line);
  }
  found.push({ kind: quoted ? 'quote' : 'paragraph', parts: inline(texts.join('\n')) });
  return at;
}

const INLINE =
  /\\([!-/:-@[-`{-~])|<br\s{0,3}\/?>|`{1,3}([^`\n]+)`{1,3}|!\[([^\]\n]*)\]\(\s*<?([^\s)>]+)(?:[\s>][^)\n]*)?\)|<img\b([^>]*)>|\[([^\]\n]+)\]\(\s*<?([^\s)>]+)(?:[\s>][^)\n]*)?\)|<(https?:\/\/[^\s<>]+)>|\*\*([^\n]+?)\*\*|__([^\n]+?)__|\*([^\s*][^\n*]*)\*|(?<!\w)_([^\s_][^\n_]*)_(?!\w)/gi;
/** Emphasis and links hold each other only so deep. */
const DEEPEST = 4;
/** A longer paragraph is shown as it is: looking for pairs in it takes time by the square of its length. */
const LONGEST_PARAGRAPH = 4_000;

export function inline(source: string, depth = 0): Inline[] {
  if (depth > DEEPEST || source.length > LONGEST_PARAGRAPH) return [{ kind: 'text', text: source }];
  const parts: Inline[] = [];
  let from = 0;
  for (const found of source.matchAll(INLINE)) {
    if (found.index > from) parts.push({ kind: 'text', text: source.slice(from, found.index) });
    parts.push(...part(found, depth + 1));
    from = found.index + found[0].length;
  }
  if (from < source.length) parts.push({ kind: 'text', text: source.slice(from) });
  return parts;
}

function part(found: RegExpMatchArray, depth: number): Inline[] {
  const [all, escaped, code, alt, picture, html, label, address, bare, strong, strong2, em, em2] = found;
  if (escaped !== undefined) return [{ kind: 'text', text: escaped }];
  if (/^<br/i.test(all!)) return [{ kind: 'break' }];
  if (code !== undefined) return [{ kind: 'code', text: code }];
  if (picture !== undefined) return [{ kind: 'picture', address: picture, text: alt ?? '' }];
  if (html !== undefined) return htmlPicture(all!, html);
  if (address !== undefined) return link(address, inline(label!, depth));
  if (bare !== undefined) return link(bare, [{ kind: 'text', text: bare }]);
  const bold = strong ?? strong2;
  if (bold !== undefined) return [{ kind: 'strong', parts: inline(bold, depth) }];
  return [{ kind: 'em', parts: inline((em ?? em2)!, depth) }];
}

/** Other addresses than those of web pages and mail lead nowhere: their text alone is shown. */
function link(address: string, parts: Inline[]): Inline[] {
  return /^(?:https?:\/\/|mailto:)/i.test(address) ? [{ kind: 'link', address, parts }] : parts;
}

function htmlPicture(all: string, attributes: string): Inline[] {
  const address = /\bsrc\s*=\s*["']?([^\s"'>]+)/i.exec(attributes)?.[1];
  const text = /\balt\s*=\s*["']([^"'>]*)/i.exec(attributes)?.[1] ?? '';
  return [address ? { kind: 'picture', address, text } : { kind: 'text', text: all }];
}
