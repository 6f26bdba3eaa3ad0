import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { JOB_GROUPS, OTHER_NAMES, ROLE_GROUPS, saidOf, SHORTHANDS, type MoreField } from './jobfields';
import { moreEdited, moreOf, rolesOf, withoutRole, withRole } from './jobmore';

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
/** Places whose short value is one of the form's first fields. */
const FIRST_FIELDS = ['topology', 'resources/devices'];
const ALL = [...JOB_GROUPS, ...ROLE_GROUPS].flatMap(({ fields }) => fields);
const field = (path: string, role = false): MoreField => ALL.find((each) => each.path.join('/') === path && !!each.role === role)!;
const shown = (text: string, one: MoreField, role = 'worker') => moreOf(text, role, [one])[0];
const put = (text: string, path: string, value: string, role = false) => moreEdited(text, 'worker', field(path, role), value);
/** The text with lines ahead of its roles. */
const having = (lines: string) => TEXT.replace('roles:\n', `${lines}roles:\n`);

describe('the fields beside the first ones', () => {
  it.each([
    ['env', false, 'A=1\nB=2'],
    ['env', true, 'LR=0.1'],
    ['array', false, '6/3'],
    ['inputs', false, 'file:///data data'],
    ['tags', false, ''],
    ['nodes/include', false, ''],
    ['after', false, 'other:ended'],
  ])('%s is shown as text, or not at all', (path, role, text) => expect(shown(TEXT, field(path, role))).toBe(text));

  it.each<[string, string, object]>([
    ['array', '100/10', { array: { size: 100, maxParallel: 10 } }],
    ['array', '5', { array: 5 }],
    ['tags', 'nightly corpus', { tags: ['nightly', 'corpus'] }],
    ['after', 'prepare', { after: ['prepare'] }],
    ['after', 'prepare clean:ended', { after: ['prepare', { job: 'clean', condition: 'ended' }] }],
    ['storages', 'data:/mnt/d home', { storages: [{ name: 'data', mountPath: '/mnt/d' }, 'home'] }],
    ['retry', '-1', { retry: -1 }],
    ['maxDuration', '2h', { maxDuration: '2h' }],
    ['storages', 'datasets home', { storages: ['datasets', 'home'] }],
    ['outputs', 'model file:///m', { outputs: [{ path: 'model', uri: 'file:///m' }] }],
    ['secrets', 'HUB_TOKEN=hub', { secrets: { HUB_TOKEN: 'hub' } }],
    ['inputs', 's3://a/b c\nfile:///d e', { inputs: [{ uri: 's3://a/b', path: 'c' }, { uri: 'file:///d', path: 'e' }] }],
    ['parameters', 'lr=0.1\nmodel=a b', { parameters: { lr: '0.1', model: 'a b' } }],
    ['nodes/include', 'n1 local/n2', { nodes: { include: ['n1', 'local/n2'] } }],
    ['nodes/expressions', 'zone in (a, b)\n!spot', { nodes: { expressions: [{ key: 'zone', operator: 'In', values: ['a', 'b'] }, { key: 'spot', operator: 'DoesNotExist' }] } }],
    ['nodes/tolerations', 'spot:NoSchedule', { nodes: { tolerations: [{ key: 'spot', operator: 'Exists', effect: 'NoSchedule' }] } }],
    ['topology/spread/level', 'rack', { topology: { spread: { level: 'rack' } } }],
    ['sharing/exclusive', 'true', { sharing: { exclusive: true } }],
    ['sharing/antiAffinity/tags', 'noisy', { sharing: { antiAffinity: { tags: ['noisy'] } } }],
    ['network/rdma', 'preferred', { network: { rdma: 'preferred' } }],
    ['gang', 'false', { gang: false }],
    ['speeds', 'A100=312\nV100=0.5', { speeds: { A100: 312, V100: 0.5 } }],
    ['checkpoint/signal', 'SIGUSR1', { checkpoint: { signal: 'SIGUSR1' } }],
    ['checkpoint/grace', '2m', { checkpoint: { grace: '2m' } }],
    ['report/pattern', 'step (?P<step>[0-9]+)\\b', { report: { pattern: 'step (?P<step>[0-9]+)\\b' } }],
    ['report/tensorboard', '/data/runs s3://bucket/runs/a', { report: { tensorboard: ['/data/runs', 's3://bucket/runs/a'] } }],
    ['hangAfter', '30m', { hangAfter: '30m' }],
    ['badHardware', 'replace', { badHardware: 'replace' }],
    ['preflight/checks', 'network platform', { preflight: { checks: ['network', 'platform'] } }],
    ['notifications/events', 'failed ended', { notifications: { events: ['failed', 'ended'] } }],
    ['notifications/quiet', 'true', { notifications: { quiet: true } }],
  ])('%s %s is written, read back, taken out again, and the rest of the file stays', (path, value, says) => {
    const changed = put(TEXT, path, value)!;
    expect(parse(changed)).toEqual({ ...parse(TEXT), ...says });
    expect(shown(changed, field(path))).toBe(value);
    for (const comment of ['# kept', '# why', '# the first', '# the end']) expect(changed).toContain(comment);
    const { [Object.keys(says)[0]!]: _, ...rest } = parse(TEXT) as Record<string, unknown>;
    expect(parse(put(changed, path, ' ')!)).toEqual(rest);
  });

  it.each<[string, string, object]>([
    ['image', 'a/b:1', { image: 'a/b:1' }],
    ['resources/disk', '20Gi', { resources: { disk: '20Gi' } }],
    ['resources/other', 'licences=2', { resources: { other: { licences: 2 } } }],
    ['ports', 'http debug:2', { ports: ['http', { name: 'debug', count: 2 }] }],
    ['ports', 'http=8080 rpc:4=9000', { ports: [{ name: 'http', start: 8080 }, { name: 'rpc', count: 4, start: 9000 }] }],
    ['resources/devices/kind', 'npu', { resources: { devices: { kind: 'npu' } } }],
    ['resources/devices/ids', '0 GPU-3f', { resources: { devices: { ids: ['0', 'GPU-3f'] } } }],
    ['resources/devices/bitmap', '0x33', { resources: { devices: { bitmap: '0x33' } } }],
    ['nodes/exclude', 'n9', { nodes: { exclude: ['n9'] } }],
    ['completion/minFailed', '2', { completion: { minFailed: 2 } }],
    ['topology/spread/level', 'node', { topology: { spread: { level: 'node' } } }],
    ['kubernetes/podTemplate/metadata/labels', 'team.example/x=a b', { kubernetes: { podTemplate: { metadata: { labels: { 'team.example/x': 'a b' } } } } }],
    ['kubernetes/podTemplate/spec/securityContext/runAsUser', '1000', { kubernetes: { podTemplate: { spec: { securityContext: { runAsUser: 1000 } } } } }],
    ['kubernetes/podTemplate/spec/hostIPC', 'true', { kubernetes: { podTemplate: { spec: { hostIPC: true } } } }],
    ['kubernetes/podTemplate/spec/volumes', 'a claim:b\nc empty', { kubernetes: { podTemplate: { spec: { volumes: [{ name: 'a', persistentVolumeClaim: { claimName: 'b' } }, { name: 'c', emptyDir: {} }] } } } }],
    ['kubernetes/podTemplate/spec/containers', 'task a:/b', { kubernetes: { podTemplate: { spec: { containers: [{ name: 'task', volumeMounts: [{ name: 'a', mountPath: '/b' }] }] } } } }],
    ['kubernetes/forceAfterSeconds', '600', { kubernetes: { forceAfterSeconds: 600 } }],
  ])('%s of a role is written into that role alone', (path, value, says) => {
    const changed = put(TEXT, path, value, true)!;
    const file = parse(TEXT) as { roles: { ps: object; worker: object } };
    expect(parse(changed)).toEqual({ ...file, roles: { ...file.roles, worker: { ...file.roles.worker, ...says } } });
    expect([shown(changed, field(path, true)), shown(changed, field(path, true), 'ps')]).toEqual([value, '']);
    expect(parse(put(changed, path, '', true)!)).toEqual(file);
  });

  it('changes one variable and leaves the comments of the others', () => {
    expect(put(TEXT, 'env', 'A=1\nB=3\nC=x=y')).toBe(TEXT.replace('  B: 2\n', '  B: "3"\n  C: "x=y"\n'));
    expect(put(TEXT, 'env', 'B=2')).toBe(TEXT.replace('  A: "1"   # why\n', ''));
    expect(parse(moreEdited(TEXT, 'ps', field('env', true), 'X=1')!).roles.ps).toEqual({ command: 'serve', env: { X: '1' } });
  });

  it('is taken out of the file when it is emptied', () => {
    expect(put(TEXT, 'array', ' ')).toBe(TEXT.replace('array: {size: 6, maxParallel: 3}\n', ''));
    expect(parse(put(TEXT, 'env', '')!)).not.toHaveProperty('env');
    expect(put(TEXT, 'nodes/exclude', '')).toBe(TEXT);
  });

  it.each([
    ['env', 'A'],
    ['inputs', 's3://a'],
    ['after', 'prepare:'],
    ['array', 'many'],
    ['speeds', 'A100=fast'],
    ['nodes/expressions', 'zone in ('],
    ['nodes/tolerations', 'spot:'],
  ])('%s %s waits until it can be written', (path, value) => expect(put(TEXT, path, value)).toBeNull());

  it.each(['http=', 'http=80=90', '=80', 'http:=80'])('ports %s wait until they can be written', (value) => expect(put(TEXT, 'ports', value, true)).toBeNull());
});

describe('the pod template of a role', () => {
  const POD = `name: x
roles:
  worker:
    command: train
    kubernetes:
      # asked for in May
      podTemplate:
        metadata:
          annotations: {a.example/b: "1"}   # why
        spec:
          serviceAccount: reader   # old name
          containers:
            - name: task
              tty: true   # ours
`;

  it('keeps what has no field, with its comments', () => {
    const changed = put(POD, 'kubernetes/podTemplate/spec/runtimeClassName', 'nvidia', true)!;
    expect(parse(changed).roles.worker.kubernetes.podTemplate.spec).toEqual({ serviceAccount: 'reader', containers: [{ name: 'task', tty: true }], runtimeClassName: 'nvidia' });
    for (const comment of ['# asked for in May', '# why', '# old name', '# ours']) expect(changed).toContain(comment);
    expect(put(changed, 'kubernetes/podTemplate/spec/runtimeClassName', '', true)).toBe(POD);
    expect(put(POD, 'kubernetes/podTemplate/metadata/annotations', 'a.example/b=1\nc=d e', true)).toContain('a.example/b: "1", c: "d e"}   # why');
  });

  it('changes one volume on lines of its own beside the comments of the others', () => {
    const lines = POD.replace('          containers:', '          volumes:\n            - name: a   # old\n              emptyDir: {}\n            - name: b\n              secret: {secretName: c}   # ours alone\n          containers:');
    const path = 'kubernetes/podTemplate/spec/volumes';
    expect(put(lines, path, 'a empty:1Gi\nb secret:c', true)).toBe(lines.replace('emptyDir: {}', 'emptyDir: {sizeLimit: 1Gi}'));
    expect(put(lines, path, 'b secret:c', true)).toBe(lines.replace('            - name: a   # old\n              emptyDir: {}\n', ''));
    expect(put(lines, path, '', true)).toBe(POD);
    expect(shown(lines, field('kubernetes/podTemplate/spec/containers', true))).toBeNull();
  });

  it('has a field in which the file says it by another name changed by hand', () => {
    expect([shown(POD, field('kubernetes/podTemplate/spec/serviceAccountName', true)), put(POD, 'kubernetes/podTemplate/spec/serviceAccountName', 'x', true)]).toEqual([null, null]);
  });
});

describe('the devices of a role', () => {
  const having = (devices: string) => `name: x\nroles:\n  worker:\n    command: train\n    resources: {cpu: 1, devices: ${devices}}   # paid\n`;

  it('keep their number when a kind or names are added', () => {
    const kind = put(having('2'), 'resources/devices/kind', 'gpu', true)!;
    expect(parse(kind).roles.worker.resources).toEqual({ cpu: 1, devices: { count: 2, kind: 'gpu' } });
    expect(parse(put(kind, 'resources/devices/ids', '0 3', true)!).roles.worker.resources.devices).toEqual({ count: 2, kind: 'gpu', ids: ['0', '3'] });
    expect(kind).toContain('# paid');
  });

  it('are read when their names are numbers, and one is taken out alone', () => {
    const text = having('{ids: [0, 1, 5]}');
    expect(shown(text, field('resources/devices/ids', true))).toBe('0 1 5');
    expect(parse(put(text, 'resources/devices/ids', '0 5', true)!).roles.worker.resources.devices.ids.map(String)).toEqual(['0', '5']);
  });
});

describe('a short value', () => {
  it.each<[string, string, string]>([
    ['nodes: a', 'nodes/include', 'a'],
    ['nodes: [a, b]', 'nodes/include', 'a b'],
    ['sharing: exclusive', 'sharing/exclusive', 'true'],
    ['network: rdma', 'network/rdma', 'required'],
    ['network: preferred', 'network/rdma', 'preferred'],
    ['topology: {spread: rack}', 'topology/spread/level', 'rack'],
    ['notifications: failed', 'notifications/events', 'failed'],
    ['preflight: network', 'preflight/checks', 'network'],
    ['report: true', 'report/enabled', 'true'],
    ['sharing: {antiAffinity: [noisy]}', 'sharing/antiAffinity/tags', 'noisy'],
  ])('%s is shown as %s', (line, path, value) => expect(shown(having(`${line}\n`), field(path))).toBe(value));

  it.each<[string, string, string, string]>([
    ['nodes: [a, b]   # ours\n', 'nodes/include', 'a c', 'nodes: [a, c]   # ours\n'],
    ['nodes: [a, b]   # ours\n', 'nodes/exclude', 'c', 'nodes: {include: [a, b], exclude: [c]}   # ours\n'],
    ['nodes:   # ours\n  - a   # first\n  # then\n  - b\n', 'nodes/exclude', 'c', 'nodes:   # ours\n  include:\n    - a   # first\n    # then\n    - b\n  exclude: [c]\n'],
    ['nodes:\n- a   # first\n', 'nodes/exclude', 'c', 'nodes:\n  include:\n  - a   # first\n  exclude: [c]\n'],
    ['sharing: exclusive   # loud\n', 'sharing/oneTaskPerNode', 'true', 'sharing: {exclusive: true, oneTaskPerNode: true}   # loud\n'],
    ['sharing: exclusive   # loud\n', 'sharing/exclusive', '', ''],
    ['topology: rack   # near\n', 'topology/sameModel', 'true', 'topology: {required: rack, sameModel: true}   # near\n'],
    ['topology: {spread: rack}\n', 'topology/spread/maxSkew', '1', 'topology: {spread: {level: rack, maxSkew: 1}}\n'],
    ['notifications: failed\n', 'notifications/waiting', '30m', 'notifications: {events: failed, waiting: "30m"}\n'],
    ['report: true\n', 'report/steps', '900', 'report: {enabled: true, steps: 900}\n'],
    ['checkpoint:\n  signal: SIGUSR1   # saves\n  path: out\n', 'checkpoint/path', '', 'checkpoint:\n  signal: SIGUSR1   # saves\n'],
  ])('%s with another field %s is written out', (before, path, value, after) => expect(put(having(before), path, value)).toBe(having(after)));

  it('is left to the file where it is repeated elsewhere, or means another field', () => {
    expect(shown(having('nodes: &n [a]\n'), field('nodes/include'))).toBeNull();
    expect(shown(having('checkpoint: {graceSeconds: 3}\n'), field('checkpoint/grace'))).toBeNull();
    expect(shown(having('nodes: {include: [a], more: 1}\n'), field('nodes/include'))).toBe('a');
    expect(shown(having('storages: [{name: a, other: 1}]\n'), field('storages'))).toBeNull();
  });
});

describe('a list on lines of its own keeps the comments beside its other items', () => {
  const list = having('storages:\n  # big\n  - data   # one\n  - home   # two\n  - old\n');
  it.each<[string, string, string]>([
    ['an item in its middle', 'data work old', list.replace('home', 'work')],
    ['one more', 'data home old new', list.replace('  - old\n', '  - old\n  - new\n')],
    ['one more in between', 'data home new old', list.replace('  - old\n', '  - new\n  - old\n')],
    ['one less', 'data old', list.replace('  - home   # two\n', '')],
  ])('%s', (_what, value, after) => expect(put(list, 'storages', value)).toBe(after));

  it('and those beside the keys of an item', () => {
    const rules = having('nodes:\n  tolerations:\n    - key: spot   # cheap\n      operator: Exists   # any\n    - key: old\n      operator: Exists\n');
    expect(put(rules, 'nodes/tolerations', 'spot:NoSchedule\nold')).toBe(rules.replace('# any\n', '# any\n      effect: NoSchedule\n'));
    expect(put(rules, 'nodes/tolerations', 'spot')).toBe(rules.replace('    - key: old\n      operator: Exists\n', ''));
    expect(put(rules, 'nodes/tolerations', 'spot\nold\n*')).toBe(rules.replace('    - key: old\n      operator: Exists\n', '    - key: old\n      operator: Exists\n    - {operator: Exists}\n'));
  });
});

it('every field has its own label and place, and every other name belongs to one', () => {
  expect(new Set(ALL.map((each) => saidOf(each).label)).size).toBe(ALL.length);
  expect(new Set(ALL.map(({ path, role }) => `${role ? 'role ' : ''}${path.join('/')}`)).size).toBe(ALL.length);
  for (const path of Object.keys(OTHER_NAMES)) expect(field(path) ?? field(path, true)).toBeDefined();
  for (const [path, { child }] of Object.entries(SHORTHANDS)) if (!FIRST_FIELDS.includes(path)) expect(field(`${path}/${child}`)).toBeDefined();
});

it('roles are added and removed where they stand', () => {
  expect(rolesOf(TEXT)).toEqual(['ps', 'worker']);
  const more = withRole(TEXT, 'evaluator');
  expect(rolesOf(more)).toEqual(['ps', 'worker', 'evaluator']);
  expect(more).toContain('# the first');
  expect(rolesOf(withoutRole(more, 'ps'))).toEqual(['worker', 'evaluator']);
  expect(rolesOf('taskRoles: {}\njobName: a\n')).toEqual([]);
});
