import { describe, expect, it } from 'vitest';
import { audience, fileOf, imported, itemsIn, missingPictures, pictureAt, shaped } from './templates';

const PICTURE = 'data:image/png;base64,iVBORw0KGgo=';
const ITEM = {
  id: 'b7', name: 'CIFAR/ResNet', author: 'Dana', type: 'template', source: 'official', status: 'approved', isPublic: false, groupList: ['vision', 'others'],
  categories: ['Images'], tags: [{ name: 'pytorch' }], summary: 'Trains it.', description: '# Model\n\n![curve](https://pai.example/blobs/Curve%201.png?sig=x)\n', protocol: 'protocolVersion: 2\nname: cifar\ntype: job\n', useNumber: 7,
};

describe("an item of OpenPAI's marketplace", () => {
  it('becomes a template that keeps its texts, and the pictures that were chosen', () => {
    const made = imported(ITEM, { 'curve 1.png': PICTURE }, ['vision']);
    expect(made).toMatchObject({ type: 'job', name: 'CIFAR-ResNet', contributor: 'Dana', description: 'Trains it.', introduction: ITEM.description, categories: ['Images'], tags: ['pytorch'], useNumber: 7 });
    expect(made.pictures).toEqual({ 'https://pai.example/blobs/Curve%201.png?sig=x': PICTURE });
    expect(fileOf(made)).toBe(ITEM.protocol);
  });
  it('is shared with those of its groups that the reader is in', () => {
    expect(audience(imported(ITEM, {}, ['vision']))).toBe('vision');
    expect(audience(imported(ITEM, {}, []))).toBe('only you and administrators');
    expect(imported(ITEM, {}, null).groupList).toEqual(['vision', 'others']);
  });
  it('says which pictures are missing', () => {
    expect(missingPictures(imported(ITEM, {}, []))).toEqual(['https://pai.example/blobs/Curve%201.png?sig=x']);
    expect(missingPictures(imported(ITEM, { 'curve 1.png': PICTURE }, []))).toEqual([]);
  });
});

it('a file of items is a list, a page of them or one', () => {
  expect(itemsIn('[{"name": "a"}]')).toHaveLength(1);
  expect(itemsIn('{"items": [{"name": "a"}, {"name": "b"}]}')).toHaveLength(2);
  expect(itemsIn('{"name": "a"}')).toHaveLength(1);
  expect(() => itemsIn('{"no": 1}')).toThrow('holds no items');
});

it('a template of the first marketplace is its own job file', () => {
  const item = { type: 'job', name: 'mnist', version: 'ab12', protocol_version: 'v2', taskRoles: { worker: {} } };
  expect(fileOf(item)).toBe('protocol_version: v2\ntaskRoles:\n  worker: {}\ntype: job\nname: mnist\n');
  expect(fileOf({ type: 'data', name: 'a' })).toBe('');
});

it('only pictures that are there are shown, and no other address', () => {
  expect(pictureAt('a.png', { 'a.png': PICTURE })).toBe(PICTURE);
  expect(pictureAt(PICTURE)).toBe(PICTURE);
  for (const address of ['https://example.org/a.png', 'data:image/svg+xml;base64,AAAA', 'javascript:x', 'constructor']) expect(pictureAt(address)).toBe('');
});

it('an item of an older marketplace begins a job with its jobConfig, and keeps its category', () => {
  const made = imported({ id: 1, name: 'a', status: 'approved', introduction: 'in short', category: ['vision'], jobConfig: { name: 'a', type: 'job', taskRoles: {} } }, {}, []);
  expect(fileOf(made)).toBe('name: a\ntype: job\ntaskRoles: {}\n');
  expect(made).toMatchObject({ categories: ['vision'], description: 'in short' });
});

it('an item with fields of another shape is shown without them', () => {
  const odd = { type: 'job', name: 'a', description: { b: 1 }, introduction: 7, contributor: ['c'], categories: 5, tags: ['t', { name: 'u' }], file: 'name: a\n' };
  expect(shaped(odd as never)).toMatchObject({ name: 'a', file: 'name: a\n', description: '', introduction: '', contributor: '', categories: [], tags: ['t'] });
});
