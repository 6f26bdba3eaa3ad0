import { expect, it } from 'vitest';
import { changeBetween, counted, diffRows } from './diff';

const DIFF = `--- Queue/research revision 1
+++ Queue/research revision 2
@@ -3,3 +3,4 @@
 name: research
-  devices: 4
+  devices: 6
+  cpu: 2
 parent: ''
@@ -20 +21 @@
--- old
+++ new
`;

it('numbers the lines on both sides and parts the hunks', () => {
  expect(diffRows(DIFF)).toEqual([
    { kind: 'same', text: 'name: research', before: 3, after: 3 },
    { kind: 'gone', text: '  devices: 4', before: 4, after: null },
    { kind: 'came', text: '  devices: 6', before: null, after: 4 },
    { kind: 'came', text: '  cpu: 2', before: null, after: 5 },
    { kind: 'same', text: "parent: ''", before: 5, after: 6 },
    { kind: 'gap', text: '⋯', before: null, after: null },
    { kind: 'gone', text: '-- old', before: 20, after: null },
    { kind: 'came', text: '++ new', before: null, after: 21 },
  ]);
});

it('has no rows where nothing differs', () => {
  expect(diffRows('')).toEqual([]);
});

it('counts what came and what went', () => {
  expect(counted(diffRows(DIFF))).toEqual({ came: 3, gone: 2 });
});

it.each<[string, string, string, { from: number; to: number; insert: string } | null]>([
  ['nothing', 'a\nb\n', 'a\nb\n', null],
  ['a line in the middle', 'name: a\nroles: {}\n', 'name: a\nqueue: b\nroles: {}\n', { from: 8, to: 8, insert: 'queue: b\n' }],
  ['a word', 'queue: one # kept', 'queue: two # kept', { from: 7, to: 10, insert: 'two' }],
  ['an end that repeats the beginning', 'aa', 'aaa', { from: 2, to: 2, insert: 'a' }],
  ['a part of a repetition', 'aaa', 'a', { from: 1, to: 3, insert: '' }],
  ['everything', 'ab', 'cd', { from: 0, to: 2, insert: 'cd' }],
  ['an empty text', '', 'a', { from: 0, to: 0, insert: 'a' }],
])('finds the one part that differs: %s', (_what, before, after, change) => {
  expect(changeBetween(before, after)).toEqual(change);
  if (change) expect(before.slice(0, change.from) + change.insert + before.slice(change.to)).toBe(after);
});
