/** What the command palette offers for a text: pages, and verbs that are followed by a job. */

import { ENDED, type JobSummary } from '../api/types';

export interface Place {
  name: string;
  to: string;
  /** Other words by which it is found. */
  words?: string;
  admin?: boolean;
}

export const PLACES: readonly Place[] = [
  { name: 'Jobs', to: '/', words: 'list cluster' },
  { name: 'Home', to: '/home', words: 'mine my needs' },
  { name: 'Compare jobs', to: '/compare', words: 'difference diff' },
  { name: 'Submit a job', to: '/submit', words: 'new run file' },
  { name: 'Templates', to: '/templates', words: 'marketplace share items' },
  { name: 'Queues', to: '/queues', words: 'shares quota virtual clusters' },
  { name: 'Waiting list', to: '/line', words: 'line order' },
  { name: 'Receipts', to: '/receipts', words: 'preemption yielded' },
  { name: 'Estimates', to: '/estimates', words: 'start accuracy' },
  { name: 'What if', to: '/what-if', words: 'question goal plan' },
  { name: 'Policy shadow', to: '/policy-shadow', words: 'candidate compare', admin: true },
  { name: 'Nodes', to: '/nodes', words: 'machines devices health drain' },
  { name: 'Devices over time', to: '/timeline', words: 'gantt timeline history forecast' },
  { name: 'Server', to: '/server', words: 'parts version health services scheduler database engine agent', admin: true },
  { name: 'Benchmarks', to: '/benchmarks', words: 'measure slow compare history', admin: true },
  { name: 'Alerts', to: '/alerts', words: 'silence firing' },
  { name: 'Usage and budgets', to: '/usage', words: 'cost accounting' },
  { name: 'Efficiency', to: '/efficiency', words: 'asked used' },
  { name: 'Fairness', to: '/fairness', words: 'week shares' },
  { name: 'Idle devices', to: '/idle' },
  { name: 'Configuration', to: '/configuration', words: 'documents revisions policy' },
  { name: 'Storages', to: '/storages', words: 'files data' },
  { name: 'Users', to: '/users', words: 'accounts people', admin: true },
  { name: 'Many users at once', to: '/users/batch', words: 'csv import', admin: true },
  { name: 'Audit log', to: '/audit', words: 'who did what refused', admin: true },
  { name: 'Groups', to: '/groups', words: 'teams members' },
  { name: 'Account', to: '/account', words: 'password tokens notifications sessions' },
];

/** A change of a job that a window asks about, or a page of the job. */
export interface Verb {
  name: string;
  does: string;
  /** Whether it makes sense for a job in its state; whether it is allowed the server says. */
  fits?: (job: Pick<JobSummary, 'state'>) => boolean;
}

const live = ({ state }: Pick<JobSummary, 'state'>) => !ENDED.has(state);
export const VERBS: readonly Verb[] = [
  { name: 'open', does: 'its page' },
  { name: 'explain', does: 'why it waits, or where it runs' },
  { name: 'log', does: 'what it prints' },
  { name: 'events', does: 'what happened to it' },
  { name: 'document', does: 'its file' },
  { name: 'terminal', does: 'a shell in a task', fits: live },
  { name: 'clone', does: 'submit another like it' },
  { name: 'compare', does: 'with another job' },
  { name: 'stop', does: 'end it', fits: live },
  { name: 'suspend', does: 'free its devices until it is resumed', fits: live },
  { name: 'resume', does: 'let it run again', fits: live },
  { name: 'restart', does: 'run it again from the start' },
  { name: 'edit', does: 'its priority, duration or queue', fits: ({ state }) => state === 'waiting' },
  { name: 'tag', does: 'add and remove its tags' },
  { name: 'delete', does: 'remove it and its logs', fits: ({ state }) => ENDED.has(state) },
];

/** The verb that a text begins with, and what follows it; a verb counts once a space ends it. */
export function read(text: string): { verb: Verb | null; rest: string } {
  const [, first = '', rest = ''] = /^\s*(\S+)\s+(.*)$/.exec(text) ?? [];
  const verb = VERBS.find(({ name }) => name === first.toLowerCase()) ?? null;
  return { verb, rest: (verb ? rest : text).trim() };
}

/** Whether every word of a text begins a word of a name; an empty text fits everything. */
export function fits(name: string, text: string): boolean {
  const words = name.toLowerCase().split(/[^a-z0-9]+/);
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
  const named = may.filter(({ name }) => fits(name, text));
  return [...named, ...may.filter((each) => !named.includes(each) && fits(`${each.name} ${each.words ?? ''}`, text))];
}
