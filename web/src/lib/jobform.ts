/** The form and the file say the same: a form is written as a short job file, a canonical document is read as a form. */

import type { JobDocument } from '../api/types';

export interface JobForm {
  name: string;
  framework: string;
  command: string;
  replicas: string;
  devices: string;
  model: string;
  cpu: string;
  memory: string;
  image: string;
  queue: string;
  priority: string;
  required: string;
  preferred: string;
}

export const FRAMEWORKS = ['shell', 'pytorch', 'tensorflow', 'jax', 'mpi', 'horovod', 'notebook', 'cntk'] as const;
export const LEVELS = ['pcie-switch', 'numa', 'node', 'rack', 'block'] as const;
export const PRIORITIES = ['crit', 'prod', 'test', 'oppo'] as const;

export const NEW_JOB: JobForm = {
  name: 'my-job',
  framework: 'shell',
  command: 'echo hello from $(hostname)',
  replicas: '1',
  devices: '0',
  model: '',
  cpu: '1',
  memory: '',
  image: '',
  queue: 'default',
  priority: '',
  required: '',
  preferred: '',
};

const PLAIN = /^[A-Za-z_/][\w ./+-]*[\w./+-]$|^[A-Za-z]$/;
const WORDS = /^(?:true|false|null|yes|no|on|off|y|n|~)$/i;

/** `text` as a YAML scalar: plain where nothing can misread it, else in double quotes (JSON's are YAML's). */
export function scalar(text: string): string {
  return PLAIN.test(text) && !WORDS.test(text) ? text : JSON.stringify(text);
}

/** A quantity such as `2`, `500m` or `2Gi` stands plain. */
export function quantity(text: string): string {
  return /^\d+(\.\d+)?[A-Za-z]{0,2}$/.test(text) ? text : scalar(text);
}

/** A number of replicas, or `2-8` for an elastic role. */
export function replicas(text: string): string {
  const [, min, max] = /^\s*(\d+)\s*-\s*(\d+)\s*$/.exec(text) ?? [];
  return min === undefined ? quantity(text) : `{min: ${min}, max: ${max}}`;
}

/** The short job file of a form; what has its default value is left out. */
export function toYaml(form: JobForm): string {
  const lines = [`name: ${scalar(form.name)}`];
  if (form.framework) lines.push(`framework: ${scalar(form.framework)}`);
  if (form.queue && form.queue !== 'default') lines.push(`queue: ${scalar(form.queue)}`);
  if (form.priority) lines.push(`priority: ${/^-?\d+$/.test(form.priority) ? form.priority : scalar(form.priority)}`);
  if (form.image) lines.push(`image: ${scalar(form.image)}`);
  lines.push('roles:', '  worker:');
  if (form.replicas && form.replicas !== '1') lines.push(`    replicas: ${replicas(form.replicas)}`);
  lines.push(`    resources: {${resources(form)}}`);
  lines.push(...commandLines(form.command));
  const near = [form.required && `required: ${scalar(form.required)}`, form.preferred && `preferred: ${scalar(form.preferred)}`];
  const topology = near.filter(Boolean).join(', ');
  if (topology) lines.push(`topology: {${topology}}`);
  return `${lines.join('\n')}\n`;
}

function resources(form: JobForm): string {
  const parts = [`cpu: ${quantity(form.cpu || '1')}`];
  if (form.memory && form.memory !== '0') parts.push(`memory: ${quantity(form.memory)}`);
  const wanted = quantity(form.devices || '0');
  if (form.model) parts.push(`devices: {count: ${wanted}, model: ${scalar(form.model)}}`);
  else if (wanted !== '0') parts.push(`devices: ${wanted}`);
  return parts.join(', ');
}

function commandLines(command: string): string[] {
  if (!command.includes('\n')) return [`    command: ${scalar(command)}`];
  const indicator = /^\s/.test(command) ? '|2' : '|';
  const lines = command.replace(/\n+$/, '').split('\n');
  return [`    command: ${indicator}`, ...lines.map((line) => (line ? `      ${line}` : ''))];
}

/** A canonical document as a form; `null` where it has what no form field shows at all (several roles, lists of words). */
export function fromDocument(document: JobDocument, name = 'worker'): JobForm | null {
  const { metadata, spec } = document;
  const [role, ...others] = spec.roles;
  if (!role || others.length > 0 || role.name !== name) return null;
  const { minReplicas, maxReplicas, replicas } = spec.replicaSpec;
  const [shell, option, line, ...more] = role.command;
  if (minReplicas !== maxReplicas || shell !== 'sh' || option !== '-c' || line === undefined || more.length > 0) return null;
  const { cpu, memory, devices } = role.resources;
  return {
    name: metadata.name,
    framework: spec.jobType,
    command: line.replace(/\n$/, ''),
    replicas: String(replicas),
    devices: String(devices.count),
    model: devices.model,
    cpu,
    memory: memory === '0' ? '' : memory,
    image: role.image,
    queue: spec.queue,
    priority: String(spec.priority),
    required: spec.topology.required,
    preferred: spec.topology.preferred,
  };
}

/** Whether two JSON values are the same, whatever the order of keys. */
export function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || !a || !b || Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [Object.entries(a), Object.entries(b)];
  return left.length === right.length && left.every(([key, value]) => key in b && same(value, (b as Record<string, unknown>)[key]));
}

/** A name for one submit, so that a repeated one makes no second job; works without TLS too. */
export function requestKey(): string {
  const random = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(random, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
