/** What the command palette offers for a text: pages, and verbs that are followed by a job. */

import { ENDED, type JobSummary } from '../api/types';
import { pages, verbs } from '../texts/english/palette';

export interface Place {
  to: keyof typeof pages;
  admin?: boolean;
}

export const PLACES: readonly Place[] = [
  { to: '/' },
  { to: '/home' },
  { to: '/compare' },
  { to: '/submit' },
  { to: '/templates' },
  { to: '/queues' },
  { to: '/line' },
  { to: '/receipts' },
  { to: '/estimates' },
  { to: '/what-if' },
  { to: '/policy-shadow', admin: true },
  { to: '/nodes' },
  { to: '/timeline' },
  { to: '/server', admin: true },
  { to: '/benchmarks', admin: true },
  { to: '/alerts' },
  { to: '/usage' },
  { to: '/efficiency' },
  { to: '/fairness' },
  { to: '/idle' },
  { to: '/configuration' },
  { to: '/storages' },
  { to: '/users', admin: true },
  { to: '/users/batch', admin: true },
  { to: '/audit', admin: true },
  { to: '/groups' },
  { to: '/account' },
];

/** A change of a job that a window asks about, or a page of the job. */
export interface Verb {
  name: keyof typeof verbs;
  /** Whether it makes sense for a job in its state; whether it is allowed the server says. */
  fits?: (job: Pick<JobSummary, 'state'>) => boolean;
}

const live = ({ state }: Pick<JobSummary, 'state'>) => !ENDED.has(state);
export const VERBS: readonly Verb[] = [
  { name: 'open' },
  { name: 'explain' },
  { name: 'log' },
  { name: 'events' },
  { name: 'document' },
  { name: 'terminal', fits: live },
  { name: 'clone' },
  { name: 'compare' },
  { name: 'stop', fits: live },
  { name: 'suspend', fits: live },
  { name: 'resume', fits: live },
  { name: 'restart' },
  { name: 'edit', fits: ({ state }) => state === 'waiting' },
  { name: 'tag' },
  { name: 'delete', fits: ({ state }) => ENDED.has(state) },
];

/** A verb as the reader types it. */
export const wordOf = ({ name }: Verb): string => verbs[name].word;

/** What a verb does, in a few words. */
export const doesOf = ({ name }: Verb): string => verbs[name].does;

/** The verb that a text begins with, and what follows it; a verb counts once a space ends it. */
export function read(text: string): { verb: Verb | null; rest: string } {
  const [, first = '', rest = ''] = /^\s*(\S+)\s+(.*)$/.exec(text) ?? [];
  const verb = VERBS.find((each) => wordOf(each).toLowerCase() === first.toLowerCase()) ?? null;
  return { verb, rest: (verb ? rest : text).trim() };
}

/** Whether every word of a text begins a word of a name; an empty text fits everything. */
export function fits(name: string, text: string): boolean {
  const words = name.toLowerCase().split(/[^\p{L}\p{N}]+/u);
  const parts = text.toLowerCase().split(/\s+/).filter(Boolean);
  return parts.every((part) => name.toLowerCase().startsWith(part) || words.some((word) => word.startsWith(part)));
}

/** Whether the search of the list of jobs finds a job by a text: answers to the text before must not be offered for this one. */
export function called(job: Pick<JobSummary, 'name' | 'id'>, text: string): boolean {
  return job.name.toLowerCase().includes(text.toLowerCase()) || job.id.startsWith(text.toLowerCase());
}

/** The pages that a text finds: those whose name fits before those found by another word. */
export function places(text: string, admin: boolean): Place[] {
  const may = PLACES.filter((each) => admin || !each.admin);
  const named = may.filter(({ to }) => fits(pages[to].name, text));
  return [...named, ...may.filter((each) => !named.includes(each) && fits(`${pages[each.to].name} ${pages[each.to].words}`, text))];
}
