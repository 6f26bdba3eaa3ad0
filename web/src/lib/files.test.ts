import { expect, it } from 'vitest';
import { crumbs, inside, size } from './files';

it('says sizes in the unit that keeps them short', () => {
  expect([0, 1023, 1536, 150 * 2 ** 20, 3 * 2 ** 40].map(size)).toEqual(['0 B', '1,023 B', '1.5 KiB', '150 MiB', '3 TiB']);
});

it('leads from the storage to a folder by the folders between', () => {
  expect(crumbs('')).toEqual([]);
  expect(crumbs('a/b c/')).toEqual([
    { name: 'a', path: 'a' },
    { name: 'b c', path: 'a/b c' },
  ]);
  expect(inside('', 'x')).toBe('x');
  expect(inside('a/b', 'x')).toBe('a/b/x');
});
