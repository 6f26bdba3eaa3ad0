/** The short form of a notebook, and the job file that it stands for. */

import { quote } from './cli';
import { quantity, scalar } from './jobform';

export interface NotebookForm {
  name: string;
  kind: 'none' | 'image' | 'environment';
  /** The image, or the folder of the environment. */
  programs: string;
  devices: string;
  cpu: string;
  memory: string;
  folder: string;
  idle: string;
  queue: string;
}

export const NEW_NOTEBOOK: NotebookForm = {
  name: 'notebook',
  kind: 'none',
  programs: '',
  devices: '0',
  cpu: '2',
  memory: '',
  folder: '',
  idle: '1h',
  queue: 'default',
};

/** How long nobody works in it before it is suspended. */
export const IDLE_TIMES = ['30m', '1h', '2h', '8h', ''] as const;

/** The folders of programs beside those of an environment. */
const SYSTEM = '/usr/local/bin:/usr/bin:/bin';

/** The storage and the working directory that a folder means: an absolute path, or `STORAGE/PATH`. */
export function place(folder: string): { storage: string; directory: string } {
  if (folder === '' || folder.startsWith('/')) return { storage: '', directory: folder };
  return { storage: folder.split('/')[0] ?? '', directory: `/mnt/${folder.replace(/\/+$/, '')}` };
}

export function notebookFile(form: NotebookForm): string {
  const { storage, directory } = place(form.folder.trim());
  const programs = form.programs.trim();
  const lines = [`name: ${scalar(form.name.trim())}`, 'framework: notebook'];
  if (form.queue && form.queue !== 'default') lines.push(`queue: ${scalar(form.queue)}`);
  if (form.kind === 'image' && programs) lines.push(`image: ${scalar(programs)}`);
  if (form.kind === 'environment' && programs) lines.push(`env: {PATH: ${scalar(`${programs.replace(/\/+$/, '')}/bin:${SYSTEM}`)}}`);
  if (form.idle) lines.push(`idle: ${form.idle}`);
  if (storage) lines.push(`storages: [${scalar(storage)}]`);
  if (directory) lines.push(`workingDir: ${scalar(directory)}`);
  const resources = [`cpu: ${quantity(form.cpu || '1')}`];
  if (form.memory) resources.push(`memory: ${quantity(form.memory)}`);
  if (form.devices && form.devices !== '0') resources.push(`devices: ${quantity(form.devices)}`);
  lines.push('roles:', '  main:', `    resources: {${resources.join(', ')}}`);
  return `${lines.join('\n')}\n`;
}

/** The command that does the same. */
export function notebookLine(form: NotebookForm): string {
  const words = ['corral', 'notebook'];
  const folder = form.folder.trim();
  const programs = form.programs.trim();
  if (folder) words.push(folder);
  if (form.name.trim()) words.push('--name', form.name.trim());
  if (form.kind !== 'none' && programs) words.push(form.kind === 'image' ? '--image' : '--environment', programs);
  if (form.devices && form.devices !== '0') words.push('--devices', form.devices);
  if (form.cpu !== NEW_NOTEBOOK.cpu) words.push('--cpu', form.cpu || '1');
  if (form.memory) words.push('--memory', form.memory);
  if (form.idle !== NEW_NOTEBOOK.idle) words.push('--idle', form.idle || '0');
  if (form.queue && form.queue !== 'default') words.push('--queue', form.queue);
  return words.map(quote).join(' ');
}
