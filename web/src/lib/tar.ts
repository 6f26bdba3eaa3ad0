/** A small writer of tar archives (POSIX pax), without owners and times: the bytes that Python's tarfile writes. */

const BLOCK = 512;
const RECORD = 20 * BLOCK;
const encoder = new TextEncoder();

/** The headers of one entry, to be followed by its content and `padding`. */
export function entry(path: string, size: number, folder: boolean, executable = false): Uint8Array {
  const name = folder ? `${path}/` : path;
  const records: string[] = [];
  const plain = isAscii(name) && encoder.encode(name).length <= 100;
  if (!plain) records.push(record('path', name));
  if (size >= 8 ** 11) records.push(record('size', String(size)));
  const own = header(plain ? name : shortened(name), records.length > 0 && size >= 8 ** 11 ? 0 : size, folder ? '5' : '0', folder || executable ? 0o755 : 0o644);
  if (records.length === 0) return own;
  const said = encoder.encode(records.join(''));
  return joined([header('././@PaxHeader', said.length, 'x', 0), said, padding(said.length), own]);
}

/** Zeros that fill the last block of `size` bytes. */
export const padding = (size: number): Uint8Array => new Uint8Array((BLOCK - (size % BLOCK)) % BLOCK);

/** What ends an archive of `size` bytes so far: two empty blocks, filled to a whole record. */
export const end = (size: number): Uint8Array => new Uint8Array(Math.ceil((size + 2 * BLOCK) / RECORD) * RECORD - size);

function header(name: string, size: number, type: string, mode: number): Uint8Array {
  const block = new Uint8Array(BLOCK);
  const put = (at: number, text: string) => block.set(encoder.encode(text), at);
  const octal = (number: number, digits: number) => number.toString(8).padStart(digits, '0');
  put(0, name);
  put(100, `${octal(mode, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0${octal(size, 11)}\0${octal(0, 11)}\0`);
  put(148, ' '.repeat(8));
  put(156, type);
  put(257, 'ustar\0' + '00');
  const sum = block.reduce((total, each) => total + each, 0);
  put(148, `${octal(sum, 6)}\0 `);
  return block;
}

/** A pax record begins with its own length, the digits of it included. */
function record(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const length = encoder.encode(rest).length;
  let total = length + String(length).length;
  if (String(total).length > String(length).length) total = length + String(total).length;
  return `${total}${rest}`;
}

const isAscii = (text: string): boolean => /^[\x00-\x7f]*$/.test(text);
const shortened = (name: string): string => name.replace(/[^\x00-\x7f]/gu, '?').slice(0, 100);

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((total, part) => total + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
