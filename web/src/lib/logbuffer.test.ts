import { expect, it } from 'vitest';
import { LogBuffer, overwritten } from './logbuffer';

const texts = (buffer: LogBuffer) => buffer.lines.map((line) => line.text);

it('joins a line that comes in pieces', () => {
  const buffer = new LogBuffer();
  for (const piece of ['one\ntw', 'o', '\n', 'three']) buffer.append(piece);
  expect(texts(buffer)).toEqual(['one', 'two', 'three']);
});

it('keeps empty lines', () => {
  const buffer = new LogBuffer();
  buffer.append('a\n\n');
  buffer.append('\nb');
  expect(texts(buffer)).toEqual(['a', '', '', 'b']);
});

it('shows the last state of a progress bar', () => {
  const buffer = new LogBuffer();
  buffer.append('10%\r50%');
  buffer.append('\r100%\nnext\r\n');
  expect(texts(buffer)).toEqual(['100%', 'next']);
  expect(overwritten('a\rb\r')).toBe('b');
});

it('lets the oldest lines go and counts them', () => {
  const buffer = new LogBuffer(3, 1000);
  buffer.append('1\n2\n3\n4\n5\n');
  expect(texts(buffer)).toEqual(['3', '4', '5']);
  expect(buffer.dropped).toBe(2);
});

it('stays within its letters however long the lines are', () => {
  const buffer = new LogBuffer(1000, 100);
  for (let at = 0; at < 50; at += 1) buffer.append(`${'x'.repeat(30)}\n`);
  expect(texts(buffer).join('').length).toBeLessThanOrEqual(100);
  expect(buffer.lines.length + buffer.dropped).toBe(50);
});

it('cuts a line without end', () => {
  const buffer = new LogBuffer();
  buffer.append('y'.repeat(1_000_000));
  expect(buffer.lines).toHaveLength(1);
  expect(texts(buffer)[0]!.length).toBeLessThan(20_000);
});

it('keeps the escapes of coloured lines beside their plain text', () => {
  const buffer = new LogBuffer();
  buffer.append('\x1b[31mred\x1b[0m\nplain\n');
  expect(buffer.lines).toEqual([{ text: 'red', raw: '\x1b[31mred\x1b[0m' }, { text: 'plain' }]);
});
