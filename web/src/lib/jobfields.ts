/** The fields that the form shows besides the first ones, in groups: of the whole job, and of one role. */

import { jobFields as texts } from '../texts/english/jobfields';
import { textOf } from '../texts/fill';
import { LEVELS } from './jobform';
import type { Path } from './jobtext';

export type Kind = 'text' | 'choice' | 'words' | 'parts' | 'pairs' | 'numbers' | 'array' | 'inputs' | 'outputs' | 'labels' | 'taints' | 'volumes' | 'containers';

export interface MoreField {
  /** Where it stands, below the job or the role. */
  path: Path;
  kind: Kind;
  /** Whether it is a field of the role. */
  role?: boolean;
  /** What may be chosen, as the file says it. One of a choice, any of a list of words. */
  options?: readonly string[];
  /** Of `a:b=c`, the keys that the parts of a word have in the file; a word of the first part alone stands for itself. */
  parts?: readonly [string, string, string?];
}

export interface FieldGroup {
  /** The name of its title in the catalogue. */
  key: keyof typeof texts.groups;
  fields: readonly MoreField[];
}

/** What a field is called, and what to write, as the end of "Write …"; of a choice, what holds while the file says nothing. */
export function saidOf({ path, role }: MoreField): { label: string; hint: string } {
  const known: Readonly<Record<string, { label: string; hint: string }>> = role ? texts.ofRole : texts.ofJob;
  return known[path.join('/')]!;
}

/** What may be chosen, in words. */
export const optionOf = (option: string): string => textOf(texts.options, option);

const YES = ['true'];
const NO = ['false'];
const EVENTS = ['started', 'succeeded', 'failed', 'stopped', 'ended', 'retried', 'preempted', 'idle', 'hung'];

function field(path: keyof typeof texts.ofJob | keyof typeof texts.ofRole, kind: Kind, more: MoreField['options'] | { parts: MoreField['parts'] } = []): MoreField {
  return { path: path.split('/'), kind, ...('parts' in more ? more : more.length > 0 && { options: more }) };
}

const OF_JOB: readonly FieldGroup[] = [
  {
    key: 'data',
    fields: [
      field('env', 'pairs'),
      field('secrets', 'pairs'),
      field('inputs', 'inputs'),
      field('outputs', 'outputs'),
      field('storages', 'parts', { parts: ['name', 'mountPath'] }),
      field('workingDir', 'text'),
      field('parameters', 'pairs'),
    ],
  },
  {
    key: 'nodes',
    fields: [
      field('nodeSelector', 'pairs'),
      field('nodes/expressions', 'labels'),
      field('nodes/include', 'words'),
      field('nodes/exclude', 'words'),
      field('nodes/tolerations', 'taints'),
      field('network/rdma', 'choice', ['preferred', 'required', 'none']),
      field('topology/spread/level', 'choice', LEVELS),
      field('topology/spread/maxSkew', 'text'),
      field('topology/group/size', 'text'),
      field('topology/group/required', 'choice', LEVELS),
      field('topology/sameModel', 'choice', YES),
      field('sharing/exclusive', 'choice', YES),
      field('sharing/oneTaskPerNode', 'choice', YES),
      field('sharing/antiAffinity/tags', 'words'),
      field('sharing/antiAffinity/level', 'choice', LEVELS),
      field('preemptible', 'choice', NO),
      field('gang', 'choice', NO),
      field('pinnedCell', 'text'),
      field('lazyPreemption', 'choice', YES),
      field('speeds', 'numbers'),
    ],
  },
  {
    key: 'limits',
    fields: [
      field('array', 'array'),
      field('after', 'parts', { parts: ['job', 'condition'] }),
      field('retry', 'text'),
      field('exitTable', 'choice', ['standard', 'frameworkcontroller', 'frameworklauncher']),
      field('maxDuration', 'text'),
      field('deadline', 'text'),
      field('idle', 'text'),
      field('barrier/enabled', 'choice', [...YES, ...NO]),
      field('countedRole', 'text'),
    ],
  },
  {
    key: 'progress',
    fields: [
      field('checkpoint/signal', 'text'),
      field('checkpoint/grace', 'text'),
      field('checkpoint/path', 'text'),
      field('report/enabled', 'choice', [...YES, ...NO]),
      field('report/file', 'text'),
      field('report/pattern', 'text'),
      field('report/steps', 'text'),
      field('report/tensorboard', 'words'),
      field('hangAfter', 'text'),
      field('badHardware', 'choice', ['auto', 'replace', 'keep']),
      field('preflight/checks', 'words', ['network', 'platform']),
      field('preflight/timeoutSeconds', 'text'),
      field('preflight/required', 'choice', YES),
      field('compileCache/share', 'choice', ['default', 'none', 'job', 'user', 'group']),
      field('compileCache/group', 'text'),
      field('profile', 'choice', YES),
    ],
  },
  {
    key: 'tags',
    fields: [
      field('tags', 'words'),
      field('labels', 'pairs'),
      field('annotations', 'pairs'),
      field('notifications/events', 'words', EVENTS),
      field('notifications/waiting', 'text'),
      field('notifications/channels', 'words'),
      field('notifications/quiet', 'choice', YES),
    ],
  },
];

const OF_ROLE: readonly FieldGroup[] = [
  {
    key: 'roleResources',
    fields: [
      field('env', 'pairs'),
      field('ports', 'parts', { parts: ['name', 'count', 'start'] }),
      field('secrets', 'pairs'),
      field('image', 'text'),
      field('imagePullSecrets', 'words'),
      field('workingDir', 'text'),
      field('resources/devices/kind', 'text'),
      field('resources/devices/ids', 'words'),
      field('resources/devices/bitmap', 'text'),
      field('resources/disk', 'text'),
      field('shm', 'text'),
      field('resources/other', 'numbers'),
      field('processesPerReplica', 'text'),
    ],
  },
  {
    key: 'roleNodes',
    fields: [
      field('nodeSelector', 'pairs'),
      field('nodes/expressions', 'labels'),
      field('nodes/include', 'words'),
      field('nodes/exclude', 'words'),
      field('nodes/tolerations', 'taints'),
      field('topology/required', 'choice', LEVELS),
      field('topology/preferred', 'choice', LEVELS),
      field('topology/spread/level', 'choice', LEVELS),
      field('topology/spread/maxSkew', 'text'),
      field('pinnedCell', 'text'),
      field('affinityGroup', 'text'),
      field('retry', 'text'),
      field('maxTaskSeconds', 'text'),
      field('completion/minFailed', 'text'),
      field('completion/minSucceeded', 'text'),
    ],
  },
  {
    key: 'rolePods',
    fields: [
      field('kubernetes/podTemplate/metadata/labels', 'pairs'),
      field('kubernetes/podTemplate/metadata/annotations', 'pairs'),
      field('kubernetes/podTemplate/spec/runtimeClassName', 'text'),
      field('kubernetes/podTemplate/spec/serviceAccountName', 'text'),
      field('kubernetes/podTemplate/spec/automountServiceAccountToken', 'choice', [...YES, ...NO]),
      field('kubernetes/podTemplate/spec/securityContext/runAsUser', 'text'),
      field('kubernetes/podTemplate/spec/securityContext/runAsGroup', 'text'),
      field('kubernetes/podTemplate/spec/securityContext/fsGroup', 'text'),
      field('kubernetes/podTemplate/spec/securityContext/runAsNonRoot', 'choice', YES),
      field('kubernetes/podTemplate/spec/hostNetwork', 'choice', YES),
      field('kubernetes/podTemplate/spec/hostIPC', 'choice', YES),
      field('kubernetes/podTemplate/spec/hostPID', 'choice', YES),
      field('kubernetes/podTemplate/spec/shareProcessNamespace', 'choice', YES),
      field('kubernetes/podTemplate/spec/dnsPolicy', 'choice', ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None']),
      field('kubernetes/podTemplate/spec/volumes', 'volumes'),
      field('kubernetes/podTemplate/spec/containers', 'containers'),
      field('kubernetes/forceAfterSeconds', 'text'),
    ],
  },
];

export const JOB_GROUPS = OF_JOB;
export const ROLE_GROUPS: readonly FieldGroup[] = OF_ROLE.map(({ key, fields }) => ({ key, fields: fields.map((each) => ({ ...each, role: true })) }));

interface Shorthand {
  /** The field below that a value in its place stands for. */
  child: string;
  /** A word of its own, and what it stands for. */
  word?: readonly [string, string];
  /** Whether the word is what a form writes. */
  written?: boolean;
}

/** Places where a word, number or list stands for one of the fields below. */
export const SHORTHANDS: Readonly<Record<string, Shorthand>> = {
  nodes: { child: 'include' },
  sharing: { child: 'exclusive', word: ['exclusive', 'true'], written: true },
  'sharing/antiAffinity': { child: 'tags' },
  network: { child: 'rdma', word: ['rdma', 'required'] },
  topology: { child: 'required' },
  'resources/devices': { child: 'count' },
  'topology/spread': { child: 'level' },
  notifications: { child: 'events' },
  preflight: { child: 'checks' },
  compileCache: { child: 'share' },
  report: { child: 'enabled' },
  barrier: { child: 'enabled' },
};

/** Two keys that mean one thing: where the file has the other, it is changed by hand. */
export const OTHER_NAMES: Readonly<Record<string, string>> = {
  retry: 'retryPolicy',
  'kubernetes/podTemplate/spec/serviceAccountName': 'serviceAccount',
  after: 'dependsOn',
  'checkpoint/grace': 'graceSeconds',
  'notifications/waiting': 'waitingSeconds',
};
