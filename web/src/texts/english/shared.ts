/** The texts of what every page has: notices, windows, times, states, lines to copy. */

import { part } from '../language';

export const shared = part('shared', {
  loading: 'Loading',
  wrong: 'Something went wrong.',
  again: 'Try again',
  leave: 'Leave it',
  copy: 'copy',
  copied: 'copied',
  copyText: 'Copy',
  copyLine: 'Copy: {line}',
  problems: 'Problems',
  problemAt: 'Go to line {line}, column {column}',
  states: {
    waiting: 'waiting',
    starting: 'starting',
    running: 'running',
    stopping: 'stopping',
    succeeded: 'succeeded',
    failed: 'failed',
    stopped: 'stopped',
  },
  roles: { admin: 'admin', user: 'user' },
  queue: 'Queue',
  then: ', then ',
  scrollsSideways: 'Scrolls sideways',
  allQueues: 'all queues',
});

export const time = part('time', {
  now: 'just now',
  ago: '{time} ago',
  until: 'in {time}',
  going: '{from}, still going',
  here: '{utc} ({local} here)',
});

/** What the portal says of a server that does not answer, and of a session that has ended. */
export const faults = part('faults', {
  unreachable: 'The server does not answer. Is it running? {command} starts it.',
  ended: 'Your session had ended. Sign in, and do this again.',
  noReason: 'The server answered {status} without a reason.',
  noFile: 'A file of this page did not come.',
});

/** Words of the tabs that differ from the names of their pages. */
export const tabs = part('tabs', {
  shares: 'Shares',
  usage: 'Usage',
  use: 'Use and budgets',
  people: 'Users and groups',
  many: 'Many at once',
});
