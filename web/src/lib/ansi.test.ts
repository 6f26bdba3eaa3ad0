import { expect, it } from 'vitest';
import { plain, segments } from './ansi';

it('cuts a coloured line where its colour changes', () => {
  expect(segments('a \x1b[1;31mred\x1b[0m b')).toEqual([
    { text: 'a ', marks: [] },
    { text: 'red', marks: ['bold', 'red'] },
    { text: ' b', marks: [] },
  ]);
});

it('takes 256-colour arguments for what they are, not for colours of their own', () => {
  expect(segments('\x1b[38;5;31mx')).toEqual([{ text: 'x', marks: [] }]);
});

it.each([
  ['cursor movements', '\x1b[2K\x1b[1Gdone', 'done'],
  ['window titles', '\x1b]0;title\x07text', 'text'],
  ['character sets', '\x1b(Btext', 'text'],
  ['nothing', 'text', 'text'],
])('takes out %s', (_what, line, left) => expect(plain(line)).toBe(left));
