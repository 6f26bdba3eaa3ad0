/** What a new document begins as, and what the server said about a draft, in words. */

import type { AppliedDocument, Finding } from '../api/types';

export const KINDS = ['Queue', 'VirtualCluster', 'Policy', 'Storage', 'Prices', 'Cluster'] as const;
export type Kind = (typeof KINDS)[number];

/** A document to begin with, by kind; each is valid as it stands. */
export const TEMPLATES: Record<Kind, string> = {
  Queue: `kind: Queue
name: my-queue
weight: 1                 # its part, beside its siblings', of the unassigned rest
deserved: {devices: 0}    # its own: lent while it is idle, reclaimed when it is wanted
# limit: {devices: 8}     # the most that its jobs may hold
# parent: research        # the queue it is part of
`,
  VirtualCluster: `kind: VirtualCluster      # a queue that owns whole cells; it is stored as a Queue
name: my-team
cells:
- {level: node, count: 1}
`,
  Storage: `kind: Storage
name: my-data             # what groups grant and jobs name
type: nfs
server: filer.example.org
path: /export/data
# share: false            # each user has a folder of their own in it
`,
  Prices: `kind: Prices
name: default             # the one called default is in force
currency: EUR
rates:
- {deviceHour: 1.20, cpuHour: 0.02, memoryGibHour: 0.003}
# - {model: h100, queue: research, from: 2026-12-01, deviceHour: 3.10}
`,
  Policy: `kind: Policy
name: default             # the one called default is in force
order: fair               # fair, priority, fifo or deadline
backfill: true
preemption: true
`,
  Cluster: `kind: Cluster
engine: local             # whose machines these are
node: {cpu: 8, memory: 16Gi, devices: {count: 4, model: described-a100}}
racks:
  "rack[1-2]": {nodes: "node[1-4]"}
`,
};

/** What a page address may say of the kind of a new document; the first kind for anything else. */
export function kindOf(word: string): Kind {
  return KINDS.find((kind) => kind.toLowerCase() === word.toLowerCase()) ?? KINDS[0];
}

export const nameOf = (each: { kind: string; name: string }) => `${each.kind}/${each.name}`;

const DOES: Record<string, string> = { created: 'is new', changed: 'changes', deleted: 'goes', unchanged: 'stays as it is' };

/** `Queue/vision changes, from revision 3`. */
export function outcome(each: AppliedDocument): string {
  const since = each.action === 'changed' && each.revision > 0 ? `, from revision ${each.revision}` : '';
  return `${nameOf(each)} ${DOES[each.action] ?? each.action}${since}`;
}

/** The server's clause as a sentence; what begins with a path keeps its letters. */
export function sentence(clause: string): string {
  const begun = /^[a-z]+\s/.test(clause) ? clause.charAt(0).toUpperCase() + clause.slice(1) : clause;
  return `${begun}.`;
}

/** Whether a change that breaks these guarantees may be made all the same, by ending what stands in its way. */
export function mayPreempt(findings: readonly Finding[]): boolean {
  return findings.length > 0 && findings.every((each) => each.preemptible);
}

/** The headers that refuse the change when somebody else was faster: `revision` must be in force, 0 for none at all. */
export function guard(revision: number): Record<string, string> {
  return revision > 0 ? { 'If-Match': `"${revision}"` } : { 'If-None-Match': '*' };
}
