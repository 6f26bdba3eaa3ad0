/** The texts of the command palette: its pages with other words by which they are found, and its verbs. */

import { part } from '../language';

export const palette = part('palette', {
  title: 'Go to, or do',
  command: 'Command',
  hint: 'A page, job, queue or node; or stop, explain, clone … and a job',
  results: 'What it leads to',
  noJob: 'No job of yours suits that. A part of a name finds the jobs of others.',
  nothing: 'Nothing is called so. Jobs are found by a part of their name or the beginning of their id.',
  looking: 'Looking',
  found: { one: '{count} found', other: '{count} found' },
  act: '{verb} {job}',
  of: '{user}, {state}',
  which: '{verb} which job',
  here: 'This job, {job}',
  withJob: 'Do with a job',
  begin: '{verb} …',
  pages: 'Pages',
  jobs: 'Jobs',
  queues: 'Queues',
  nodes: 'Nodes',
});

/** A page's name, and other words by which it is found. */
export const pages = part('pages', {
  '/': { name: 'Jobs', words: 'list cluster' },
  '/home': { name: 'Home', words: 'mine my needs' },
  '/compare': { name: 'Compare jobs', words: 'difference diff' },
  '/submit': { name: 'Submit a job', words: 'new run file' },
  '/templates': { name: 'Templates', words: 'marketplace share items' },
  '/queues': { name: 'Queues', words: 'shares quota virtual clusters' },
  '/line': { name: 'Waiting list', words: 'line order' },
  '/receipts': { name: 'Receipts', words: 'preemption yielded' },
  '/estimates': { name: 'Estimates', words: 'start accuracy' },
  '/what-if': { name: 'What if', words: 'question goal plan' },
  '/policy-shadow': { name: 'Policy shadow', words: 'candidate compare' },
  '/nodes': { name: 'Nodes', words: 'machines devices health drain' },
  '/timeline': { name: 'Devices over time', words: 'gantt timeline history forecast' },
  '/server': { name: 'Server', words: 'parts version health services scheduler database engine agent' },
  '/benchmarks': { name: 'Benchmarks', words: 'measure slow compare history' },
  '/alerts': { name: 'Alerts', words: 'silence firing' },
  '/usage': { name: 'Usage and budgets', words: 'cost accounting' },
  '/efficiency': { name: 'Efficiency', words: 'asked used' },
  '/fairness': { name: 'Fairness', words: 'week shares' },
  '/idle': { name: 'Idle devices', words: '' },
  '/configuration': { name: 'Configuration', words: 'documents revisions policy' },
  '/storages': { name: 'Storages', words: 'files data' },
  '/users': { name: 'Users', words: 'accounts people' },
  '/users/batch': { name: 'Many users at once', words: 'csv import' },
  '/audit': { name: 'Audit log', words: 'who did what refused' },
  '/groups': { name: 'Groups', words: 'teams members' },
  '/account': { name: 'Account', words: 'password tokens notifications sessions language' },
});

/** A verb as it is typed, and what it does. */
export const verbs = part('verbs', {
  open: { word: 'open', does: 'its page' },
  explain: { word: 'explain', does: 'why it waits, or where it runs' },
  log: { word: 'log', does: 'what it prints' },
  events: { word: 'events', does: 'what happened to it' },
  document: { word: 'document', does: 'its file' },
  terminal: { word: 'terminal', does: 'a shell in a task' },
  clone: { word: 'clone', does: 'submit another like it' },
  compare: { word: 'compare', does: 'with another job' },
  stop: { word: 'stop', does: 'end it' },
  suspend: { word: 'suspend', does: 'free its devices until it is resumed' },
  resume: { word: 'resume', does: 'let it run again' },
  restart: { word: 'restart', does: 'run it again from the start' },
  edit: { word: 'edit', does: 'its priority, duration or queue' },
  tag: { word: 'tag', does: 'add and remove its tags' },
  delete: { word: 'delete', does: 'remove it and its logs' },
});
