import { expect, it } from 'vitest';
import { kinds, link } from './links';

it('names vendor links by their number and paths over PCIe by the bridges between', () => {
  expect(link(112)).toMatchObject({ short: 'NV12', words: "by 12 links of the vendor's own (NVLink, XGMI, HCCS)" });
  expect([60, 50, 40, 30, 20, 10, 1].map((each) => link(each)?.short)).toEqual(['board', 'PIX', 'PXB', 'PHB', 'NODE', 'SYS', 'PCIe']);
  expect(link(0)).toBeNull();
});

it('lists each kind of a matrix once, the best first', () => {
  const matrix = [
    [0, 104, 10],
    [104, 0, 10],
    [10, 10, 0],
  ];
  expect(kinds(matrix).map(({ short }) => short)).toEqual(['NV4', 'SYS']);
});
