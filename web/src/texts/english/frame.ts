/** The texts of the frame: the bar, the account's menu, the keys, and the pages for what went wrong. */

import { part } from '../language';

export const frame = part('frame', {
  skip: 'Skip to the content',
  home: '{product}: home',
  homeTitle: 'Home',
  main: 'Main',
  jobs: 'Jobs',
  queues: 'Queues',
  nodes: 'Nodes',
  alerts: 'Alerts',
  usage: 'Usage',
  configuration: 'Configuration',
  config: 'Config',
  storages: 'Storages',
  users: 'Users',
  submit: 'Submit',
  command: 'Go to, or do',
  commandKey: '{keys}: go to, or do',
  keys: 'Keys',
  lost: '◌ no connection, trying again',
  lostTitle: 'Shown as last known; trying again',
  alertsFire: { one: '{count} alert fires', other: '{count} alerts fire' },
});

export const menu = part('menu', {
  account: 'Account {user}',
  theme: 'Theme',
  system: 'system',
  light: 'light',
  dark: 'dark',
  templates: 'Templates',
  groups: 'Groups',
  yourGroups: 'Your groups',
  password: 'Password and tokens',
  signOut: 'Sign out',
});

/** What each key of the portal does. */
export const keys = part('keys', {
  command: 'Go to a page, job, queue or node, or do something with a job',
  search: 'Search',
  next: 'Next row',
  previous: 'Previous row',
  open: 'Open the row',
  choose: 'Choose the job, to stop or tag several',
  edit: 'Edit the document, or move the shares of queues',
  write: 'Write a new document, make a user, group or silence',
  submit: 'Submit a job',
  home: 'Go to what is yours (Home)',
  jobs: 'Go to the jobs',
  queues: 'Go to the queues',
  line: 'Go to the waiting list',
  nodes: 'Go to the nodes',
  alerts: 'Go to the alerts',
  usage: 'Go to usage and budgets',
  configuration: 'Go to the configuration',
  storages: 'Go to the storages',
  users: 'Go to users and groups',
  account: 'Go to your account',
  tabs: 'Overview, log, events, document, terminal, profiles, outputs of a job',
  theme: 'Dark or light',
  these: 'These keys',
  leave: 'Leave a field, close a window',
});

/** The pages for addresses that lead nowhere, for outages and for faults. */
export const lost = part('lost', {
  notFound: 'Not found',
  noPage: 'There is no such page',
  mistyped: 'The address may be mistyped. A job is found by its name or id with the search of the {list}.',
  list: 'job list',
  noConnection: 'No connection',
  noAnswer: 'The server does not answer; trying again',
  comesBack: 'This page comes back by itself. Jobs that run go on. On the server’s machine, {command} starts the server.',
  fault: 'Something went wrong',
  notShown: 'This page could not be shown',
  unaffected: 'Jobs are not affected. The command line works without the portal: {command}',
});
