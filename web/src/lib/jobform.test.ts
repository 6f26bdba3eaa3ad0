import { expect, it } from 'vitest';
import type { JobDocument } from '../api/types';
import { fromDocument, NEW_JOB, requestKey, same, scalar, toYaml } from './jobform';

it('leaves out what has its default value', () => {
  expect(toYaml({ ...NEW_JOB, name: 'digits', framework: 'pytorch', command: 'python train.py', replicas: '2', devices: '1' })).toBe(
    'name: digits\nframework: pytorch\nroles:\n  worker:\n    replicas: 2\n    resources: {cpu: 1, devices: 1}\n    command: python train.py\n',
  );
});

it('writes everything that the form has', () => {
  const text = toYaml({ ...NEW_JOB, queue: 'research', priority: '50', image: 'org/image:1', memory: '2Gi', model: 'A100', devices: '4', required: 'rack', preferred: 'pcie-switch' });
  expect(text).toContain('queue: research\npriority: 50\nimage: "org/image:1"\n');
  expect(text).toContain('{cpu: 1, memory: 2Gi, devices: {count: 4, model: A100}}');
  expect(text).toContain('topology: {required: rack, preferred: pcie-switch}\n');
});

it('writes commands of several lines as a block', () => {
  expect(toYaml({ ...NEW_JOB, command: 'set -e\n\necho "a: b" # c\n' })).toContain('    command: |\n      set -e\n\n      echo "a: b" # c\n');
});

it.each([
  ['plain words', 'python train.py', 'python train.py'],
  ['a number', '12', '"12"'],
  ['a boolean', 'true', '"true"'],
  ['a mapping', 'a: b', '"a: b"'],
  ['a comment', 'a # b', '"a # b"'],
  ['flow brackets', '{a}', '"{a}"'],
  ['trailing space', 'a ', '"a "'],
  ['nothing', '', '""'],
])('quotes %s where YAML would read it otherwise', (_what, text, written) => expect(scalar(text)).toBe(written));

const document = (change: object = {}, role: object = {}): JobDocument =>
  ({
    metadata: { name: 'digits' },
    spec: {
      jobType: 'pytorch',
      queue: 'default',
      priority: '',
      topology: { required: 'rack', preferred: '' },
      replicaSpec: { role: 'worker', replicas: 2, minReplicas: 2, maxReplicas: 2 },
      roles: [{ name: 'worker', image: '', command: ['sh', '-c', 'python train.py'], resources: { cpu: '1', memory: '0', devices: { count: 1, model: '' } }, ...role }],
      ...change,
    },
  }) as JobDocument;

it('reads a canonical document of one role as a form', () => {
  expect(fromDocument(document())).toMatchObject({ name: 'digits', framework: 'pytorch', command: 'python train.py', replicas: '2', devices: '1', memory: '', required: 'rack' });
});

it.each([
  ['a list of words as command', document({}, { command: ['python', 'train.py'] })],
  ['another role name', document({}, { name: 'ps' })],
  ['elastic replicas', document({ replicaSpec: { role: 'worker', replicas: 2, minReplicas: 1, maxReplicas: 4 } })],
  ['no role', document({ roles: [] })],
])('has no form for %s', (_what, unformable) => expect(fromDocument(unformable)).toBeNull());

it('compares documents whatever the order of their keys', () => {
  expect(same({ a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1 })).toBe(true);
  expect(same({ a: 1 }, { a: 1, b: undefined })).toBe(false);
  expect(same([1, 2], [2, 1])).toBe(false);
  expect(same([], {})).toBe(false);
});

it('names every submit differently', () => {
  const keys = new Set(Array.from({ length: 100 }, requestKey));
  expect(keys.size).toBe(100);
  for (const key of keys) expect(key).toMatch(/^[0-9a-f]{32}$/);
});
