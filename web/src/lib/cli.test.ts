import { expect, it } from 'vitest';
import { jobLine, listLine, nodeLine, quote, refOf, submitLine, tagLine } from './cli';

it('says the filters of a list as a command', () => {
  expect(listLine({ state: 'running,waiting', user: 'ada', q: 'my job', tag: 'corpus' })).toBe("corral ls --state running --state waiting --user ada --tag corpus --search 'my job'");
  expect(listLine({})).toBe('corral ls');
});

it('quotes what a shell would take apart', () => {
  expect([quote("it's"), quote('$(rm)'), quote('plain-1.2'), quote('ada~digits'), quote('~')]).toEqual([
    `'it'\\''s'`,
    `'$(rm)'`,
    'plain-1.2',
    'ada~digits',
    `'~'`,
  ]);
  expect(jobLine('scale', 'my;job', 3)).toBe("corral scale 'my;job' 3");
});

it.each([
  ['running', 'ada', 'digits'],
  ['waiting', 'jun', 'ada~digits'],
  ['failed', 'ada', 'j1'],
] as const)('names a %s job of ada for %s as %s', (state, me, said) => {
  expect(refOf({ id: 'j1', name: 'digits', user: 'ada', state }, me)).toBe(said);
});

it('says how a node is closed, emptied and opened', () => {
  expect(nodeLine('cordon', 'local/n1')).toBe('corral cordon local/n1');
  expect(nodeLine('drain', 'local/n1', { why: "ada's cables", grace: 0 })).toBe(`corral drain local/n1 --grace 0 --why 'ada'\\''s cables'`);
  expect(nodeLine('drain', 'local/n1', { afterJobs: true })).toBe('corral drain local/n1 --after-jobs');
  expect(nodeLine('uncordon', 'local/n1', { why: 'new cables' })).toBe('corral uncordon local/n1');
});

it('says how a file is submitted, with what goes with it', () => {
  expect(submitLine({})).toBe('corral submit -f job.yaml');
  expect(submitLine({ from: 'j1', parameters: { lr: '0.1', note: 'my job' } })).toBe("corral submit -f job.yaml --set lr=0.1 --set 'note=my job' --from j1");
});

it('says a change of tags as a command', () => {
  expect(tagLine([{ id: 'a1' }, { id: 'b2' }], ['my paper'], ['draft'])).toBe("corral tag a1 b2 --add 'my paper' --remove draft");
});
