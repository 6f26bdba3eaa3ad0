/** What a new document begins as, and what the server said about a draft, in words. */

import type { AppliedDocument, Finding } from '../api/types';
import { comments, draft as texts } from '../texts/english/configuration';
import { fill, textOf } from '../texts/fill';

export const KINDS = ['Queue', 'VirtualCluster', 'Policy', 'Storage', 'Prices', 'Cluster'] as const;
export type Kind = (typeof KINDS)[number];

/** A document to begin with, by kind; each is valid as it stands. */
export const template = (kind: Kind): string => TEMPLATES[kind](comments);

const TEMPLATES: Record<Kind, (said: typeof comments) => string> = {
  Queue: (said) => `kind: Queue
name: my-queue
weight: 1                 # ${said.weight}
deserved: {devices: 0}    # ${said.deserved}
# limit: {devices: 8}     # ${said.limit}
# parent: research        # ${said.parent}
`,
  VirtualCluster: (said) => `kind: VirtualCluster      # ${said.virtualCluster}
name: my-team
cells:
- {level: node, count: 1}
`,
  Storage: (said) => `kind: Storage
name: my-data             # ${said.storageName}
type: nfs
server: filer.example.org
path: /export/data
# share: false            # ${said.share}
`,
  Prices: (said) => `kind: Prices
name: default             # ${said.inForce}
currency: EUR
rates:
- {deviceHour: 1.20, cpuHour: 0.02, memoryGibHour: 0.003}
# - {model: h100, queue: research, from: 2026-12-01, deviceHour: 3.10}
`,
  Policy: (said) => `kind: Policy
name: default             # ${said.inForce}
order: fair               # ${said.orders}
backfill: true
preemption: true
`,
  Cluster: (said) => `kind: Cluster
engine: local             # ${said.engine}
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

/** `Queue/vision changes, from revision 3`. */
export function outcome(each: AppliedDocument): string {
  const action = each.action === 'changed' && each.revision > 0 ? 'changedFrom' : each.action;
  return fill(textOf(texts.outcomes, action), { document: nameOf(each), revision: each.revision });
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
