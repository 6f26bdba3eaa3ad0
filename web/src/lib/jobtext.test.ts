import { describe, expect, it } from 'vitest';
import type { JobDocument } from '../api/types';
import { NEW_JOB, toYaml, type JobForm } from './jobform';
import { codeOf, edited, formable, formOf } from './jobtext';

const TEXT = `# what I tried last
name: digits      # the old one
env: {B: 1, A: 2}   # in this order
roles:
  # only one
  train:
    resources: {cpu: 2,  devices: 1}   # two spaces
    command: |  # all of it
      set -e
      python train.py
    env:
      LR: "0.1"
code: .
# the end
`;

const document = (change: object = {}, role: object = {}): JobDocument =>
  ({
    metadata: { name: 'digits' },
    spec: {
      jobType: 'shell',
      queue: 'default',
      priority: '10',
      topology: { required: '', preferred: '' },
      replicaSpec: { role: 'train', replicas: 1, minReplicas: 1, maxReplicas: 1 },
      roles: [{ name: 'train', image: '', command: ['sh', '-c', 'set -e\npython train.py\n'], resources: { cpu: '2', memory: '0', devices: { count: 1, model: '' } }, ...role }],
      ...change,
    },
  }) as JobDocument;

const FORM = formOf(TEXT, document())!;
const change = (fields: Partial<JobForm>, text = TEXT, form = FORM) => edited(text, form, { ...form, ...fields });

it('shows a file that says more than the form has', () => {
  expect(FORM).toMatchObject({ name: 'digits', cpu: '2', devices: '1', command: 'set -e\npython train.py', queue: 'default' });
});

it('shows a part of a device as the file has it', () => {
  expect(formOf(TEXT.replace('devices: 1', 'devices: 0.5'), document())?.devices).toBe('0.5');
});

describe('a change of the form leaves the rest of the file as it is', () => {
  it.each<[string, Partial<JobForm>, string, string]>([
    ['a name', { name: 'other' }, 'name: digits ', 'name: other '],
    ['a number in a list of fields', { devices: '4' }, 'devices: 1}', 'devices: 4}'],
    ['a field that was not there, among fields in one line', { memory: '2Gi' }, 'cpu: 2, ', 'cpu: 2, memory: 2Gi, '],
    ['a field that was not there, on a line of its own', { queue: 'research' }, 'old one\n', 'old one\nqueue: research\n'],
    ['a field of the role', { replicas: '3' }, '    resources', '    replicas: 3\n    resources'],
    ['a model beside a number', { model: 'A100' }, 'devices: 1}', 'devices: {count: 1, model: A100}}'],
    ['a level', { required: 'rack' }, 'env:\n      LR: "0.1"\n', 'env:\n      LR: "0.1"\ntopology: {required: rack}\n'],
    ['lines of a command', { command: 'python test.py\n\nexit 0' }, '      set -e\n      python train.py\n', '      python test.py\n\n      exit 0\n'],
    ['one line for several', { command: 'python test.py' }, '|  # all of it\n      set -e\n      python train.py\n', 'python test.py  # all of it\n'],
  ])('%s', (_what, fields, from, to) => expect(change(fields)).toBe(TEXT.replace(from, to)));

  it('several lines for one, with the comment of that line', () => {
    const text = TEXT.replace('|  # all of it\n      set -e\n      python train.py\n', 'python train.py  # all of it\n');
    expect(change({ command: 'a\nb' }, text)).toBe(TEXT.replace('      set -e\n      python train.py\n', '      a\n      b\n'));
  });

  it('a field that is emptied', () => {
    const text = change({ queue: 'research', memory: '2Gi', priority: 'prod', image: 'x' })!;
    const form = { ...FORM, queue: 'research', memory: '2Gi', priority: 'prod', image: 'x' };
    expect(change({ memory: '', priority: '', image: '' }, text, form)).toBe(change({ queue: 'research' }));
  });

  it('a level beside another that is one word', () => {
    const text = `${TEXT}topology: rack\n`;
    const form = { ...FORM, required: 'rack' };
    expect(change({ required: 'node' }, text, form)).toBe(`${TEXT}topology: node\n`);
    expect(change({ preferred: 'numa' }, text, form)).toBe(`${TEXT}topology: {required: rack, preferred: numa}\n`);
  });
});

it('writes a value where others are repeated', () => {
  const text = TEXT.replace('B: 1', 'B: &n digits').replace('LR: "0.1"', 'LR: *n');
  expect(change({ name: 'other' }, text)).toBe(text.replace('name: digits', 'name: other'));
});

describe('of several roles', () => {
  const text = TEXT.replace('code: .\n', '  ps: {replicas: 2, command: serve}\ncode: .\n');
  const roles = [...document().spec.roles, { name: 'ps', image: '', command: ['sh', '-c', 'serve'], resources: { cpu: '1', memory: '0', devices: { count: 0, model: '' } } }];
  const two = document({ roles });
  it('each has a form of its own', () => {
    expect(formOf(text, two, 'train')).toMatchObject({ devices: '1', replicas: '1' });
    expect(formOf(text, two, 'ps')).toMatchObject({ name: 'digits', command: 'serve', replicas: '2' });
  });
  it('a change is made in the one that is shown', () => {
    const form = formOf(text, two, 'ps')!;
    expect(edited(text, form, { ...form, replicas: '4' }, 'ps')).toBe(text.replace('replicas: 2', 'replicas: 4'));
  });
});

it('shows and writes an elastic role as a range', () => {
  const text = TEXT.replace('    resources', '    replicas: {min: 2, max: 8}   # grows\n    resources');
  const elastic = document({ replicaSpec: { role: 'train', replicas: 8, minReplicas: 2, maxReplicas: 8 } });
  const form = formOf(text, elastic)!;
  expect(form.replicas).toBe('2-8');
  expect(edited(text, form, { ...form, replicas: '3-9' })).toBe(text.replace('min: 2, max: 8', 'min: 3, max: 9'));
  expect(edited(text, form, { ...form, replicas: '4' })).toBe(text.replace('{min: 2, max: 8}', '4'));
  expect(formOf(text.replace('max: 8', 'max: 8, start: 3'), elastic)).toBeNull();
  expect(toYaml({ ...NEW_JOB, replicas: '2-8' })).toContain('replicas: {min: 2, max: 8}');
});

it('writes files of the form anew', () => {
  expect(edited(toYaml(NEW_JOB), NEW_JOB, { ...NEW_JOB, queue: 'research' })).toBe(toYaml({ ...NEW_JOB, queue: 'research' }));
});

it.each([
  ['a canonical document', 'apiVersion: corral.dev/v1\nkind: UnifiedJob\nspec: {}\n'],
  ['a file of OpenPAI', 'protocolVersion: 2\nname: j\ntaskRoles: {}\n'],
  ['what is no YAML', 'name: [a'],
  ['a command of words', TEXT.replace(/command: .*\n.*\n.*\n/, 'command: [a, b]\n')],
  ['a value that others repeat', TEXT.replace('name: digits', 'name: &n digits').replace('LR: "0.1"', 'LR: *n')],
  ['two documents', `${TEXT}---\n${TEXT}`],
])('has no form for %s', (_what, text) => expect(formOf(text, document())).toBeNull());

it('leaves a text alone that it cannot read', () => expect(change({ name: 'x' }, 'name: [a')).toBeNull());

it('tells what a file says of its code', () => {
  expect(codeOf(TEXT)).toBe('"."');
  expect(codeOf('name: x\n')).toBe('""');
});

it.each([
  [TEXT, 'yes'],
  ['name: [', 'unread'],
  ['{"apiVersion": "corral/v1", "kind": "UnifiedJob", "spec": {"roles": []}}', 'more'],
  ['name: x\nroles: {a: {command: "true"}, b: {command: "true"}}\n', 'yes'],
  ['name: x\nroles: {a: {command: "true"}, b: [1]}\n', 'more'],
])('tells a text that a form can change from others: %#', (text, can) => expect(formable(text)).toBe(can));
