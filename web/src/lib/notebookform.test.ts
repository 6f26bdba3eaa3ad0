import { expect, it } from 'vitest';
import { NEW_NOTEBOOK, notebookFile, notebookLine, place } from './notebookform';

it('says no more than what was chosen', () => {
  expect(notebookFile({ ...NEW_NOTEBOOK, name: 'lab' })).toBe('name: lab\nframework: notebook\nidle: 1h\nroles:\n  main:\n    resources: {cpu: 2}\n');
  expect(notebookLine({ ...NEW_NOTEBOOK, name: 'lab' })).toBe('corral notebook --name lab');
});

it('writes an environment, a folder of a storage, devices and the queue', () => {
  const form = { ...NEW_NOTEBOOK, name: 'lab', kind: 'environment' as const, programs: '/opt/torch/', devices: '1', memory: '8Gi', folder: 'home/my lab', idle: '', queue: 'research' };
  expect(notebookFile(form)).toBe(
    'name: lab\nframework: notebook\nqueue: research\nenv: {PATH: "/opt/torch/bin:/usr/local/bin:/usr/bin:/bin"}\nstorages: [home]\nworkingDir: /mnt/home/my lab\n' +
      'roles:\n  main:\n    resources: {cpu: 2, memory: 8Gi, devices: 1}\n',
  );
  expect(notebookLine(form)).toBe("corral notebook 'home/my lab' --name lab --environment /opt/torch/ --devices 1 --memory 8Gi --idle 0 --queue research");
});

it.each([
  ['', '', ''],
  ['/data/lab', '', '/data/lab'],
  ['home', 'home', '/mnt/home'],
  ['home/a/', 'home', '/mnt/home/a'],
])('takes %j for the storage %j and the directory %j', (folder, storage, directory) => {
  expect(place(folder)).toEqual({ storage, directory });
});
