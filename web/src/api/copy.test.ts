import { afterEach, expect, it, vi } from 'vitest';
import { copyOf } from './copy';

afterEach(() => vi.unstubAllGlobals());

const document = (spec: object = {}) => ({
  metadata: { name: 'digits' },
  spec: {
    jobType: 'shell',
    queue: 'default',
    priority: '',
    topology: { required: '', preferred: '' },
    replicaSpec: { role: 'worker', replicas: 1, minReplicas: 1, maxReplicas: 1, targetReplicas: {} },
    roles: [{ name: 'worker', image: '', command: ['sh', '-c', 'true'], resources: { cpu: '1', memory: '0', devices: { count: 1, model: '' } } }],
    ...spec,
  },
});

/** A server that has `stored`, and reads every file as the plain document. */
function serve(stored: object) {
  const answer = (body: object) => Promise.resolve(new Response(JSON.stringify(body), { status: 200, headers: { 'Content-Type': 'application/json' } }));
  vi.stubGlobal('fetch', (url: string) => answer(String(url).includes('/validate') ? { valid: true, problems: [], document: document() } : stored));
}

it('copies a job as a short file where that says all of it', async () => {
  serve(document());
  expect(await copyOf('digits')).toContain('name: digits\n');
});

it('copies the whole document where the short file would lose a field', async () => {
  serve(document({ maxDurationSeconds: 60 }));
  expect(JSON.parse(await copyOf('digits')).spec.maxDurationSeconds).toBe(60);
});
