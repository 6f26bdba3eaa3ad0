import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { containerLine, containerSources, volumeLine, volumeSources } from './podrules';

const said = (sources: Record<string, string> | null) => sources && Object.fromEntries(Object.entries(sources).map(([key, value]) => [key, parse(value) as unknown]));

describe('volumes of a pod template', () => {
  it.each<[string, object]>([
    ['scratch empty', { name: 'scratch', emptyDir: {} }],
    ['scratch empty:10Gi', { name: 'scratch', emptyDir: { sizeLimit: '10Gi' } }],
    ['fast memory', { name: 'fast', emptyDir: { medium: 'Memory' } }],
    ['fast memory:512Mi', { name: 'fast', emptyDir: { medium: 'Memory', sizeLimit: '512Mi' } }],
    ['data claim:datasets', { name: 'data', persistentVolumeClaim: { claimName: 'datasets' } }],
    ['conf configMap:nginx', { name: 'conf', configMap: { name: 'nginx' } }],
    ['keys secret:hub', { name: 'keys', secret: { secretName: 'hub' } }],
    ['verbs hostPath:/dev/infiniband', { name: 'verbs', hostPath: { path: '/dev/infiniband' } }],
    ['home nfs:nfs.example:/export/home', { name: 'home', nfs: { server: 'nfs.example', path: '/export/home' } }],
  ])('%s', (line, volume) => {
    expect(said(volumeSources(line))).toEqual(volume);
    expect(volumeLine(volume as Record<string, unknown>)).toBe(line);
  });

  it.each(['scratch', 'Scratch empty', 'scratch empty:much', 'scratch claim', 'scratch other:thing', 'home nfs:/export', 'a empty b', 'a constructor:b'])('%s waits until it can be written', (line) =>
    expect(volumeSources(line)).toBeNull());

  it.each<[string, Record<string, unknown>]>([
    ['is read only', { name: 'a', persistentVolumeClaim: { claimName: 'b', readOnly: true } }],
    ['has items', { name: 'a', configMap: { name: 'b', items: [] } }],
    ['is of another kind', { name: 'a', csi: { driver: 'c' } }],
    ['has no source', { name: 'a' }],
    ['has two sources', { name: 'a', emptyDir: {}, secret: { secretName: 'b' } }],
    ['has a source of null', { name: 'a', emptyDir: null }],
    ['has no name', { emptyDir: {} }],
    ['is on huge pages', { name: 'a', emptyDir: { medium: 'HugePages' } }],
    ['has a name that is a number', { name: 'a', secret: { secretName: 7 } }],
  ])('one that %s is left to the file', (_what, volume) => expect(volumeLine(volume)).toBeNull());
});

describe('containers of a pod template', () => {
  it.each<[string, object]>([
    ['task', { name: 'task' }],
    ['task data:/data:ro scratch:/tmp/x', { name: 'task', volumeMounts: [{ name: 'data', mountPath: '/data', readOnly: true }, { name: 'scratch', mountPath: '/tmp/x' }] }],
    ['proxy nginx:1.27', { name: 'proxy', image: 'nginx:1.27' }],
    ['proxy host.example:5000/nginx conf:/etc/nginx:ro', { name: 'proxy', image: 'host.example:5000/nginx', volumeMounts: [{ name: 'conf', mountPath: '/etc/nginx', readOnly: true }] }],
    ['watch busybox -- tail -f "/x y" -- z', { name: 'watch', image: 'busybox', command: ['sh', '-c', 'tail -f "/x y" -- z'] }],
    ['watch busybox data:/ -- echo a:/b', { name: 'watch', image: 'busybox', command: ['sh', '-c', 'echo a:/b'], volumeMounts: [{ name: 'data', mountPath: '/' }] }],
  ])('%s', (line, container) => {
    expect(said(containerSources(line))).toEqual(container);
    expect(containerLine(container as Record<string, unknown>)).toBe(line);
  });

  it.each(['proxy', 'proxy data:/data', 'proxy -- true', 'task nginx', 'task -- true', 'proxy nginx data', 'proxy nginx data:tmp', 'Proxy nginx'])('%s waits until it can be written', (line) =>
    expect(containerSources(line)).toBeNull());

  it.each<[string, Record<string, unknown>]>([
    ['has a terminal', { name: 'task', tty: true }],
    ['is the task’s, with an image', { name: 'task', image: 'a' }],
    ['has no image', { name: 'proxy' }],
    ['has an image that reads like a volume', { name: 'proxy', image: 'a:/b' }],
    ['has another command', { name: 'proxy', image: 'a', command: ['nginx'] }],
    ['has a command of two lines', { name: 'proxy', image: 'a', command: ['sh', '-c', 'a\nb'] }],
    ['has an empty command', { name: 'proxy', image: 'a', command: ['sh', '-c', ''] }],
    ['has a command that is none', { name: 'proxy', image: 'a', command: 'nginx' }],
    ['mounts a part of a volume', { name: 'task', volumeMounts: [{ name: 'a', mountPath: '/a', subPath: 'b' }] }],
    ['mounts what is no map', { name: 'task', volumeMounts: ['a'] }],
  ])('one that %s is left to the file', (_what, container) => expect(containerLine(container)).toBeNull());
});
