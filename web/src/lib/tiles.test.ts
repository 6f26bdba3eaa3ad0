import { describe, expect, it } from 'vitest';
import { belowOf, tileLines, tileName } from './tiles';

const held = { name: 'a-rather-long-name', user: 'ada', standing: [] as string[] };

describe('the name of a tile', () => {
  it('begins with what is written on it, and has the rest of what is cut', () => {
    const lines = tileLines(held.name, belowOf(held), 69);
    expect(lines).toEqual(['a-rathe…', 'ada']);
    expect(tileName(held, lines)).toBe('a-rathe…, ada, a-rather-long-name');
  });
  it('says once what fits, and names the user where the standing is written', () => {
    expect(tileName({ ...held, name: 'train' }, ['train', 'ada'])).toBe('train, ada');
    const guest = { ...held, name: 'train', standing: ['guest', 'leaving'] };
    expect(tileName(guest, tileLines('train', belowOf(guest), 200))).toBe('train, guest, leaving, ada');
  });
  it('names job, user and standing where nothing is written', () => {
    expect(tileName({ ...held, standing: ['guest'] }, null)).toBe('a-rather-long-name, ada, guest');
  });
});
