import { describe, expect, it } from 'vitest';
import { drawn, flamesOf, hueOf, next } from './flames';

const FRAMES = [
  { name: 'job', depth: 0, begin: 0, samples: 100 },
  { name: 'main', depth: 1, begin: 0, samples: 100 },
  { name: 'load', depth: 2, begin: 0, samples: 25 },
  { name: 'train', depth: 2, begin: 25, samples: 75 },
  { name: 'mm', depth: 3, begin: 25, samples: 50 },
  { name: 'add', depth: 3, begin: 75, samples: 25 },
];
const flames = flamesOf(FRAMES);
const [job, main, load, train, mm, add] = flames as [Flame, Flame, Flame, Flame, Flame, Flame];
type Flame = (typeof flames)[number];

describe('a flame graph', () => {
  it('knows which frame called which', () => {
    expect(flames.map((each) => each.parent)).toEqual([-1, 0, 1, 1, 3, 3]);
    expect(main.below).toEqual([load.at, train.at]);
  });

  it('is drawn whole, or with one frame as wide as the picture', () => {
    expect(drawn(flames, job).map(({ flame, left, width }) => [flame.name, left, width])).toContainEqual(['train', 0.25, 0.75]);
    const part = drawn(flames, train);
    expect(part.map(({ flame }) => flame.name)).toEqual(['job', 'main', 'train', 'mm', 'add']);
    expect(part.map(({ width }) => width)).toEqual([1, 1, 1, 2 / 3, 1 / 3]);
  });

  it('leaves out frames that are too narrow to see', () => {
    const many = flamesOf([FRAMES[0]!, { name: 'thin', depth: 1, begin: 0, samples: 0.1 }]);
    expect(drawn(many, many[0]!).map(({ flame }) => flame.name)).toEqual(['job']);
  });

  it('is walked by the arrow keys, and stays where there is no other frame', () => {
    const shown = drawn(flames, job);
    expect(next(shown, job, 'ArrowDown')).toBe(main);
    expect(next(shown, main, 'ArrowDown')).toBe(load);
    expect(next(shown, load, 'ArrowRight')).toBe(train);
    expect(next(shown, train, 'ArrowRight')).toBe(train);
    expect(next(shown, add, 'ArrowLeft')).toBe(mm);
    expect(next(shown, mm, 'ArrowUp')).toBe(train);
    expect(next(shown, add, 'Home')).toBe(job);
    expect(next(shown, add, 'x')).toBe(add);
  });

  it('gives a name one colour', () => {
    expect(hueOf('train')).toBe(hueOf('train'));
    expect(hueOf('train')).not.toBe(hueOf('load'));
  });
});
