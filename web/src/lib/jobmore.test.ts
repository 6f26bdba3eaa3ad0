import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { MORE, moreEdited, moreOf, rolesOf, withoutRole, withRole } from './jobmore';

const TEXT = `name: digits   # kept
env:
  A: "1"   # why
  B: 2
array: {size: 6, maxParallel: 3}
inputs: [{uri: "file:///data", path: data}]
after: [{job: other, condition: ended}]
roles:
  ps:   # the first
    command: serve
  worker:
    command: train
    env: {LR: 0.1}
# the end
`;
const field = (key: string, role = false) => MORE.find((each) => each.key === key && !!each.role === role)!;

describe('the fields beside the first ones', () => {
  it.each([
    ['env', false, 'A=1\nB=2'],
    ['env', true, 'LR=0.1'],
    ['array', false, '6/3'],
    ['inputs', false, 'file:///data data'],
    ['tags', false, ''],
    ['after', false, null],
  ])('%s is shown as text, or not at all', (key, role, shown) => expect(moreOf(TEXT, 'worker', field(key, role))).toBe(shown));

  it.each<[string, string, unknown]>([
    ['array', '100/10', { size: 100, maxParallel: 10 }],
    ['array', '5', 5],
    ['tags', 'nightly corpus', ['nightly', 'corpus']],
    ['after', 'prepare', ['prepare']],
    ['retry', '-1', -1],
    ['maxDuration', '2h', '2h'],
    ['storages', 'datasets home', ['datasets', 'home']],
    ['outputs', 'model file:///m', [{ path: 'model', uri: 'file:///m' }]],
    ['secrets', 'HUB_TOKEN=hub', { HUB_TOKEN: 'hub' }],
    ['inputs', 's3://a/b c\nfile:///d e', [{ uri: 's3://a/b', path: 'c' }, { uri: 'file:///d', path: 'e' }]],
  ])('%s %s is written, read back and the rest of the file stays', (key, value, says) => {
    const changed = moreEdited(TEXT, 'worker', field(key), value)!;
    expect(parse(changed)).toEqual({ ...parse(TEXT), [key]: says });
    expect(moreOf(changed, 'worker', field(key))).toBe(value);
    for (const comment of ['# kept', '# why', '# the first', '# the end']) expect(changed).toContain(comment);
  });

  it('changes one variable and leaves the comments of the others', () => {
    expect(moreEdited(TEXT, 'worker', field('env'), 'A=1\nB=3\nC=x=y')).toBe(TEXT.replace('  B: 2\n', '  B: "3"\n  C: "x=y"\n'));
    expect(moreEdited(TEXT, 'worker', field('env'), 'B=2')).toBe(TEXT.replace('  A: "1"   # why\n', ''));
    expect(parse(moreEdited(TEXT, 'ps', field('env', true), 'X=1')!).roles.ps).toEqual({ command: 'serve', env: { X: '1' } });
  });

  it('is taken out of the file when it is emptied', () => {
    expect(moreEdited(TEXT, 'worker', field('array'), ' ')).toBe(TEXT.replace('array: {size: 6, maxParallel: 3}\n', ''));
    expect(parse(moreEdited(TEXT, 'worker', field('env'), '')!)).not.toHaveProperty('env');
  });

  it('waits with what cannot be written yet', () => {
    expect(moreEdited(TEXT, 'worker', field('env'), 'A')).toBeNull();
    expect(moreEdited(TEXT, 'worker', field('inputs'), 's3://a')).toBeNull();
    expect(moreEdited(TEXT, 'worker', field('array'), 'many')).toBeNull();
  });
});

it('roles are added and removed where they stand', () => {
  expect(rolesOf(TEXT)).toEqual(['ps', 'worker']);
  const more = withRole(TEXT, 'evaluator');
  expect(rolesOf(more)).toEqual(['ps', 'worker', 'evaluator']);
  expect(more).toContain('# the first');
  expect(rolesOf(withoutRole(more, 'ps'))).toEqual(['worker', 'evaluator']);
  expect(rolesOf('taskRoles: {}\njobName: a\n')).toEqual([]);
});
