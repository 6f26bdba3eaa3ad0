/** The shapes of `/api/v3`, written by hand from the contract: `corral/model/records.py` and `corral/model/views.py`. */

import type { QueueStanding } from './overview';

export type JobState = 'waiting' | 'starting' | 'running' | 'stopping' | 'succeeded' | 'failed' | 'stopped';
export const JOB_STATES: readonly JobState[] = [
  'waiting',
  'starting',
  'running',
  'stopping',
  'succeeded',
  'failed',
  'stopped',
];
export const ENDED: ReadonlySet<string> = new Set(['succeeded', 'failed', 'stopped']);

export interface Page<Item> {
  items: Item[];
  next: string | null;
}
export interface Exit {
  code: number;
  phrase: string;
  class: string;
  message: string;
}
export interface TaskCounts {
  total: number;
  waiting: number;
  running: number;
  succeeded: number;
  failed: number;
}
export interface JobSummary {
  id: string;
  name: string;
  user: string;
  queue: string;
  priority: number;
  jobType: string;
  state: JobState;
  createdAt: string;
  startedAt: string | null;
  endedAt: string | null;
  tasks: TaskCounts;
  devices: number;
  /** How many its tasks hold now. */
  devicesHeld: number;
  retries: number;
  taskRetries: number;
  exit: Exit | null;
  waiting: { code: string; message: string; ahead: number } | null;
  tags: string[];
  /** The array that the line stands for, where a list has one line for each. */
  array?: { name: string; tag: string; states: Partial<Record<JobState, number>> } | null;
}
export interface Role extends TaskCounts {
  name: string;
  replicas: number;
  target: number;
  elastic: boolean;
  minReplicas: number;
  maxReplicas: number;
}
export interface Placement {
  role: string;
  index: number;
  node: string;
  devices: number[];
  host: string;
  ports: Record<string, number[]>;
  state: string;
  rank: number | null;
}
export interface Reason {
  code: string;
  message: string;
  counts: Record<string, number>;
}
export interface Reasons {
  binding: Reason;
  others: Reason[];
  ahead: number;
  possible: boolean;
}
export interface JobDetail extends JobSummary {
  document: JobDocument;
  attempt: number;
  roles: Role[];
  placement: Placement[];
  reasons: Reasons | null;
  links: Record<string, string>;
  retriesLeft: number | null;
  dependsOn: string[];
  notes: string[];
  suspended: boolean;
  checkpointedAt: string | null;
  /** The sum of the waits that are over. */
  waitedSeconds: number;
  waitingSince: string | null;
  receipts: Receipt[];
  /** What the caller may do with it, whatever state it is in: `stop`, `logs`, `exec` and so on. */
  allowed: string[];
}
/** One time that a job, or some of its tasks, had to yield. */
export interface Receipt {
  id: string;
  job: string;
  name: string;
  user: string;
  queue: string;
  rule: string;
  message: string;
  at: string;
  state: 'away' | 'returned' | 'ended';
  devices: number;
  tasks: string[];
  byJob: string;
  costDeviceSeconds: number;
  backAt: string | null;
  returnedAt: string | null;
}
/** Who closed a node to new tasks, and why. */
export interface Cordon {
  by: string;
  why: string;
  at: string;
  drain: '' | 'now' | 'after-jobs';
}
export interface Task {
  role: string;
  index: number;
  state: string;
  attempt: number;
  node: string;
  devices: number[];
  host: string;
  ports: Record<string, number[]>;
  startedAt: string | null;
  endedAt: string | null;
  exit: Exit | null;
  retries: number;
  retryAt: string | null;
  share?: Share | null;
}
export interface EventRecord {
  seq: number;
  job: string;
  at: string;
  kind: string;
  actor: string;
  message: string;
  role: string;
  index: number;
  attempt: string;
  data: Record<string, unknown>;
}
export interface Explanation {
  job: string;
  state: string;
  message: string;
  reasons: Reasons | null;
  ahead: JobSummary[];
  estimate: Estimate | null;
  changes: Change[];
}
export interface Estimate {
  basis: string;
  message: string;
  at: string | null;
  seconds: number | null;
  after: JobSummary[];
}
export interface Change {
  path: string;
  from: string | number;
  to: string | number;
  message: string;
}
/** The part of one device that a task has; null is the whole. */
export interface Share {
  computePercent: number;
  memoryPercent: number;
}
export interface Holding {
  id: string;
  name: string;
  user: string;
  role: string;
  index: number;
  share?: Share | null;
}
export interface Device {
  index: number;
  id: string;
  kind: string;
  model: string;
  memoryBytes: number;
  healthy: boolean;
  healthReason: string;
  described: boolean;
  cells: Record<string, string>;
  node: string;
  /** The index of the device that it is a slice of; -1 is none. */
  parent?: number;
  /** Whether it can be given whole: nobody has a part or a slice of it. */
  free?: boolean;
  job: Holding | null;
  /** Those who have parts of it besides. */
  others?: Holding[];
}
export interface Amounts {
  cpuMillis: number;
  memoryBytes: number;
  devices: number;
}
export interface NodeJob {
  id: string;
  name: string;
  user: string;
  tasks: number;
  devices: number;
}
export interface Node {
  name: string;
  engine: string;
  ready: boolean;
  reason: string;
  cordon: Cordon | null;
  levels: Record<string, string>;
  labels: Record<string, string>;
  total: Amounts;
  free: Amounts;
  devices: Device[];
  tasks: number;
  /** Whose tasks they are. */
  jobs: NodeJob[];
  seenAt: string;
}
export interface Cell {
  level: string;
  name: string;
  devices: number;
  free: number;
  ready: boolean;
  cells: Cell[];
  holds: Device[];
}
export interface Queue {
  name: string;
  running: number;
  waiting: number;
  devices: number;
  doc: Record<string, unknown>;
  /** None while the scheduler does not answer. */
  standing: QueueStanding | null;
  /** Whether only members of groups that grant or manage it submit to it. */
  membersOnly: boolean;
  /** Who manages it, beside administrators; only where one queue is asked for. */
  managers: string[];
}
export interface Top {
  at: string;
  total: Amounts;
  free: Amounts;
  waiting: number;
  running: number;
  jobs: JobSummary[];
}
/** Whether one may sign in with OpenID Connect, and what the button for it says. */
export interface Oidc {
  enabled: boolean;
  label: string;
}

export interface Me {
  user: string;
  role: string;
  groups: string[];
  /** The queues that it manages, those below them included; `*` is all. */
  manages: string[];
}
export interface UserView {
  name: string;
  role: string;
  groups: string[];
  createdAt: string;
  disabled: boolean;
  hasPassword: boolean;
  email: string;
  /** The highest priority of its jobs; null leaves it to its groups. */
  maxPriority: number | null;
}
export interface UserChanged extends UserView {
  /** After a new password: what it ended, and which tokens are still valid. */
  notice: string;
}
export interface Token {
  id: string;
  name: string;
  kind: string;
  user: string;
  createdAt: string;
  expiresAt: string | null;
  lastUsedAt: string | null;
}
export interface NewToken extends Token {
  token: string;
}
export interface Problem {
  path: string;
  message: string;
  line: number;
  column: number;
  file: string;
}
export interface Validation {
  valid: boolean;
  problems: Problem[];
  document: JobDocument | null;
  /** Which documents of the file are another program's and left out. */
  notes: string[];
}
export interface Trial {
  document: JobDocument;
  wouldStart: boolean | null;
  reasons: Reasons | null;
  /** Which documents of the file are another program's and left out. */
  notes: string[];
}

/** The parts of a canonical document that the portal reads; the rest is passed through. */
export interface JobDocument {
  metadata: { name: string; [key: string]: unknown };
  spec: {
    jobType: string;
    queue: string;
    priority: string | number;
    maxDurationSeconds?: number;
    topology: { required: string; preferred: string };
    replicaSpec: {
      role: string;
      replicas: number;
      minReplicas: number;
      maxReplicas: number;
      /** Replicas by node, as the scheduler alone decides them. */
      targetReplicas?: Record<string, number>;
    };
    roles: DocumentRole[];
    [key: string]: unknown;
  };
  [key: string]: unknown;
}
export interface DocumentRole {
  name: string;
  image: string;
  command: string[];
  resources: { cpu: string; memory: string; devices: { count: number; model: string } };
  [key: string]: unknown;
}

/** The file that a job was submitted as, with `******` for secrets. */
export interface JobFile {
  job: string;
  text: string;
  /** Those that were given beside it. */
  parameters: Record<string, string>;
  /** The digest of the code that was uploaded with it. */
  code: string;
  /** How many secrets are kept for its placeholders. */
  secrets: number;
}

/** One revision of a document that configures the cluster. */
export interface DocumentSummary {
  kind: string;
  name: string;
  revision: number;
  at: string;
  actor: string;
  note: string;
  deleted: boolean;
}
export interface DocumentView extends DocumentSummary {
  document: Record<string, unknown>;
  text: string;
}
export interface DocumentDiff {
  kind: string;
  name: string;
  before: number;
  after: number;
  diff: string;
}
/** What became of one document; in a dry run, what would, and `revision` is the one in force. */
export interface AppliedDocument {
  kind: string;
  name: string;
  revision: number;
  action: string;
  diff: string;
}
/** A guarantee that a change breaks: `queue` needs so many cells of `level` and so many there are. */
export interface Finding {
  message: string;
  queue: string;
  level: string;
  model: string;
  needed: number;
  available: number;
  /** Whether the change can be made all the same, by ending what stands in its way. */
  preemptible: boolean;
}
export interface Applied {
  documents: AppliedDocument[];
  dryRun: boolean;
  findings: Finding[];
}

/** One run of one task. */
export interface Attempt {
  id: string;
  jobAttempt: number;
  role: string;
  index: number;
  attempt: number;
  node: string;
  devices: number[];
  startedAt: string | null;
  endedAt: string | null;
  exit: Exit | null;
}

/** What /readyz says. */
export interface Readiness {
  ready: boolean;
  degraded?: boolean;
  reasons: string[];
}

/** What is used, and how much may be; 0 is no limit. */
export interface Amount {
  used: number;
  limit: number;
}
export interface AccountUse {
  tasks: Amount;
  codeBytes: Amount;
  submissions: Amount;
  logBytesOfStream: number;
  folderBytesOfTask: number;
  /** The folder that the account has on storages which give each user one. */
  folder: string;
}
