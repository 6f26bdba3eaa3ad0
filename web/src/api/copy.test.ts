import { afterEach, expect, it, vi } from 'vitest';
import { copyOf, queryOf, shownText } from './copy';

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

/** A server that has `stored`, and reads every file as the plain document; `file` is what the job was submitted as. */
function serve(stored: object, file?: object) {
  const answer = (body: object, status = 200) => Promise.resolve(new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json' } }));
  vi.stubGlobal('fetch', (url: string) => {
    if (String(url).endsWith('/file')) return file ? answer(file) : answer({ code: 'no-job-file' }, 404);
    if (String(url).includes('short=true')) return answer({ name: 'digits', maxDuration: '1m', roles: { worker: { command: 'true' } } });
    return answer(String(url).includes('/validate') ? { valid: true, problems: [], document: document() } : stored);
  });
}

it('copies a job as a short file where that says all of it', async () => {
  serve(document());
  expect((await copyOf('digits')).text).toContain('name: digits\n');
});

it("copies the server's short form as YAML where the form's file would lose a field", async () => {
  serve(document({ maxDurationSeconds: 60 }));
  expect((await copyOf('digits')).text).toBe('name: digits\nmaxDuration: 1m\nroles:\n  worker:\n    command: "true"\n');
});

const FILE = { job: '1abc', text: '# mine\nname: digits\ncode: .\n', parameters: { lr: '0.1' }, code: 'c0de', secrets: 1 };

it('copies the file that was submitted, comments and all, with what went with it', async () => {
  serve(document(), FILE);
  const copy = await copyOf('digits');
  expect(copy.text).toBe(FILE.text);
  expect(queryOf(copy.given, copy.text)).toEqual({ from: '1abc', set: ['lr=0.1'], code: 'c0de' });
});

it('leaves the code of the copied job out once the file says another one', async () => {
  serve(document(), FILE);
  const { given, text } = await copyOf('digits');
  expect(queryOf(given, text.replace('name: digits', 'name: other')).code).toBe('c0de');
  expect(queryOf(given, text.replace('code: .', 'code: "https://x/y.tar"')).code).toBeUndefined();
});

it('shows JSON that a program wrote in one line as YAML', () => {
  expect(shownText('{"name": "x", "roles": {"w": {"command": "a\\nb"}}}')).toBe('name: x\nroles:\n  w:\n    command: |-\n      a\n      b\n');
  expect(shownText(FILE.text)).toBe(FILE.text);
});
