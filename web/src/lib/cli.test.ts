import { expect, it } from 'vitest';
import { jobLine, listLine, quote } from './cli';

it('says the filters of a list as a command', () => {
  expect(listLine({ state: 'running,waiting', user: 'ada', q: 'my job' })).toBe("corral ls --state running --state waiting --user ada --search 'my job'");
  expect(listLine({})).toBe('corral ls');
});

it('quotes what a shell would take apart', () => {
  expect([quote("it's"), quote('$(rm)'), quote('plain-1.2')]).toEqual([`'it'\\''s'`, `'$(rm)'`, 'plain-1.2']);
  expect(jobLine('scale', 'my;job', 3)).toBe("corral scale 'my;job' 3");
});
