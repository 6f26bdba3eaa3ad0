/** The fields that the form shows besides the first ones, in groups: of the whole job, and of one role. */

import { LEVELS } from './jobform';
import type { Path } from './jobtext';

export type Kind = 'text' | 'choice' | 'words' | 'parts' | 'pairs' | 'numbers' | 'array' | 'inputs' | 'outputs' | 'labels' | 'taints';

export interface MoreField {
  /** Where it stands, below the job or the role. */
  path: Path;
  label: string;
  /** What to write, as the end of "Write …"; of a choice, what holds while the file says nothing. */
  hint: string;
  kind: Kind;
  /** Whether it is a field of the role. */
  role?: boolean;
  /** What may be chosen: what the file says, and its words. One of a choice, any of a list of words. */
  options?: readonly (readonly [string, string])[];
  /** Of `a:b=c`, the keys that the parts of a word have in the file; a word of the first part alone stands for itself. */
  parts?: readonly [string, string, string?];
}

export interface FieldGroup {
  title: string;
  fields: readonly MoreField[];
}

const words = (...all: string[]) => all.map((each) => [each, each] as const);
const YES = [['true', 'yes']] as const;
const NO = [['false', 'no']] as const;
const LINES = 'one a line';
const NAMES = 'names with blanks between';
const LABEL_RULES = `zone in (a, b), zone notin (c), ssd, !spot or memory > 40, ${LINES}`;
const TAINTS = `key, key=value or key:NoSchedule, ${LINES}`;
const SPREAD = 'anything';
const EVENTS = [
  ['started', 'started'],
  ['succeeded', 'succeeded'],
  ['failed', 'failed'],
  ['stopped', 'was stopped'],
  ['ended', 'ended in any way'],
  ['retried', 'is tried again'],
  ['preempted', 'was preempted'],
  ['idle', 'leaves devices idle'],
  ['hung', 'hangs'],
] as const;

function field(path: string, label: string, kind: Kind, hint: string, more: MoreField['options'] | { parts: MoreField['parts'] } = []): MoreField {
  return { path: path.split('/'), label, kind, hint, ...('parts' in more ? more : more.length > 0 && { options: more }) };
}

const OF_JOB: readonly FieldGroup[] = [
  {
    title: 'Environment, data and parameters',
    fields: [
      field('env', 'Environment of all roles', 'pairs', `NAME=value, ${LINES}`),
      field('secrets', 'Secrets', 'pairs', `VARIABLE=stored secret, ${LINES}`),
      field('inputs', 'Data in', 'inputs', `URI and path, ${LINES}`),
      field('outputs', 'Data out', 'outputs', `path and URI, ${LINES}`),
      field('storages', 'Storages', 'parts', 'names with blanks between; name:/path for another place', { parts: ['name', 'mountPath'] }),
      field('workingDir', 'Working folder', 'text', 'a folder, or nothing: where the code is'),
      field('parameters', 'Parameters', 'pairs', `name=value, ${LINES}`),
    ],
  },
  {
    title: 'Nodes, spread, sharing and network',
    fields: [
      field('nodeSelector', 'Labels of its nodes', 'pairs', `label=value, ${LINES}`),
      field('nodes/expressions', 'Rules on labels of its nodes', 'labels', LABEL_RULES),
      field('nodes/include', 'Only on these nodes', 'words', NAMES),
      field('nodes/exclude', 'On none of these nodes', 'words', NAMES),
      field('nodes/tolerations', 'Taints that it tolerates', 'taints', TAINTS),
      field('network/rdma', 'Network with RDMA', 'choice', 'not needed', words('preferred', 'required', 'none')),
      field('topology/spread/level', 'Tasks in different', 'choice', SPREAD, words(...LEVELS)),
      field('topology/spread/maxSkew', 'Largest difference between two of them', 'text', 'a number; 0 is as even as possible'),
      field('topology/group/size', 'Tasks in one group', 'text', 'a number; 0 is no groups'),
      field('topology/group/required', 'Each group within one', 'choice', SPREAD, words(...LEVELS)),
      field('topology/sameModel', 'Devices of one model', 'choice', 'no', YES),
      field('sharing/exclusive', 'Nodes for itself', 'choice', 'no', YES),
      field('sharing/oneTaskPerNode', 'One task on a node', 'choice', 'no', YES),
      field('sharing/antiAffinity/tags', 'Away from jobs tagged', 'words', 'tags with blanks between'),
      field('sharing/antiAffinity/level', 'Not with them in one', 'choice', 'node', words(...LEVELS)),
      field('preemptible', 'May yield to others', 'choice', 'yes', NO),
      field('gang', 'All tasks start together', 'choice', 'yes', NO),
      field('pinnedCell', 'Pinned cell', 'text', 'the name of a cell of its queue'),
      field('lazyPreemption', 'Runs on as a guest (HiveD)', 'choice', 'no', YES),
      field('speeds', 'Work per second by model', 'numbers', `model=number, ${LINES}`),
    ],
  },
  {
    title: 'Arrays, dependencies, retries and limits',
    fields: [
      field('array', 'Array of jobs', 'array', '100, or 100/10: ten at a time'),
      field('after', 'After these jobs succeeded', 'parts', 'names with blanks between; name:ended for any end', { parts: ['job', 'condition'] }),
      field('retry', 'Retries after failures', 'text', '0; -1 is no limit'),
      field('exitTable', 'Table of exit codes', 'choice', 'standard', words('standard', 'frameworkcontroller', 'frameworklauncher')),
      field('maxDuration', 'Longest run', 'text', 'no limit, or 2h'),
      field('deadline', 'Should be over within', 'text', 'none, or 8h'),
      field('idle', 'Suspend when idle for', 'text', 'never, or 1h'),
      field('barrier/enabled', 'Tasks wait for each other', 'choice', 'no', [...YES, ...NO]),
      field('countedRole', 'Role that scale changes', 'text', 'a role; the elastic one, or the first'),
    ],
  },
  {
    title: 'Checkpoints, progress and health',
    fields: [
      field('checkpoint/signal', 'Signal that asks for a checkpoint', 'text', 'none, or SIGUSR1'),
      field('checkpoint/grace', 'Time to end in', 'text', 'the server’s own, or 2m'),
      field('checkpoint/path', 'Checkpoints are in', 'text', 'a file or folder'),
      field('report/enabled', 'Reports by corral.report', 'choice', 'no, unless one of the next two is there', [...YES, ...NO]),
      field('report/file', 'Reports in the file', 'text', 'a JSON file'),
      field('report/pattern', 'Reports in lines of its log', 'text', 'a regular expression such as step (?P<step>[0-9]+)'),
      field('report/steps', 'Steps of the work', 'text', 'a number'),
      field('hangAfter', 'Hangs without progress for', 'text', 'as its queue says, or 30m'),
      field('badHardware', 'On a lost node or bad device', 'choice', 'auto', words('auto', 'replace', 'keep')),
      field('preflight/checks', 'Checks before the start', 'words', 'nothing is checked', words('network', 'platform')),
      field('preflight/timeoutSeconds', 'Longest check, in seconds', 'text', '30'),
      field('preflight/required', 'Checks must be completed', 'choice', 'no', YES),
      field('compileCache/share', 'Keep what is compiled', 'choice', 'as its queue says', words('default', 'none', 'job', 'user', 'group')),
      field('compileCache/group', 'Group that shares it', 'text', 'a group of yours'),
      field('profile', 'Traces of PyTorch', 'choice', 'no', YES),
    ],
  },
  {
    title: 'Tags, labels and notifications',
    fields: [
      field('tags', 'Tags', 'words', 'words with blanks between'),
      field('labels', 'Labels', 'pairs', `label=value, ${LINES}`),
      field('annotations', 'Annotations', 'pairs', `key=text, ${LINES}`),
      field('notifications/events', 'Tell me when it', 'words', 'what my channels say', EVENTS),
      field('notifications/waiting', 'Tell me when it waited for', 'text', 'never, or 30m'),
      field('notifications/channels', 'Tell me on', 'words', 'channels with blanks between; none: all'),
      field('notifications/quiet', 'Tell me nothing', 'choice', 'no', YES),
    ],
  },
];

const OF_ROLE: readonly FieldGroup[] = [
  {
    title: 'Environment, ports and resources of this role',
    fields: [
      field('env', 'Environment of this role', 'pairs', `NAME=value, ${LINES}`),
      field('ports', 'Ports of this role', 'parts', 'names, such as http; http:2 for two, http=8080 for a number', { parts: ['name', 'count', 'start'] }),
      field('secrets', 'Secrets of this role', 'pairs', `VARIABLE=stored secret, ${LINES}`),
      field('image', 'Image of this role', 'text', 'the job’s'),
      field('imagePullSecrets', 'Secrets that open its registry', 'words', NAMES),
      field('workingDir', 'Working folder of this role', 'text', 'the job’s'),
      field('resources/devices/kind', 'Kind of its devices', 'text', 'any, or gpu'),
      field('resources/devices/ids', 'Named devices of its node', 'words', 'indexes or ids with blanks between'),
      field('resources/devices/bitmap', 'The same as bits', 'text', 'none, or 0x33'),
      field('resources/disk', 'Disk each', 'text', 'none, or 20Gi'),
      field('shm', 'Shared memory each', 'text', 'the engine’s own, or 1Gi'),
      field('resources/other', 'Other resources each', 'numbers', `name=number, ${LINES}`),
      field('processesPerReplica', 'Processes of a task', 'text', '0; one for each device'),
    ],
  },
  {
    title: 'Nodes, ends and retries of this role',
    fields: [
      field('nodeSelector', 'Labels of this role’s nodes', 'pairs', `label=value, ${LINES}`),
      field('nodes/expressions', 'Rules on labels of this role’s nodes', 'labels', LABEL_RULES),
      field('nodes/include', 'This role only on these nodes', 'words', NAMES),
      field('nodes/exclude', 'This role on none of these nodes', 'words', NAMES),
      field('nodes/tolerations', 'Taints that this role tolerates', 'taints', TAINTS),
      field('topology/required', 'This role within one', 'choice', SPREAD, words(...LEVELS)),
      field('topology/preferred', 'This role within one, if there is room', 'choice', SPREAD, words(...LEVELS)),
      field('topology/spread/level', 'Tasks of this role in different', 'choice', SPREAD, words(...LEVELS)),
      field('topology/spread/maxSkew', 'Largest difference between two of these', 'text', 'a number; 0 is as even as possible'),
      field('pinnedCell', 'Pinned cell of this role', 'text', 'the name of a cell of its queue'),
      field('affinityGroup', 'Affinity group (HiveD)', 'text', 'a name that roles share'),
      field('retry', 'Retries of one task', 'text', '0; -1 is no limit'),
      field('maxTaskSeconds', 'Longest run of a task, in seconds', 'text', 'a number; 0 is no limit'),
      field('completion/minFailed', 'Failed tasks that fail the job', 'text', '1; 0 is none'),
      field('completion/minSucceeded', 'Succeeded tasks that end the job', 'text', 'a number; -1 is all'),
    ],
  },
];

export const JOB_GROUPS = OF_JOB;
export const ROLE_GROUPS: readonly FieldGroup[] = OF_ROLE.map(({ title, fields }) => ({ title, fields: fields.map((each) => ({ ...each, role: true })) }));

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
  after: 'dependsOn',
  'checkpoint/grace': 'graceSeconds',
  'notifications/waiting': 'waitingSeconds',
};
