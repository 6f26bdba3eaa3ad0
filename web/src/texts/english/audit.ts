/** The texts of the audit log. */

import { part } from '../language';

export const audit = part('audit', {
  auditLog: 'Audit log',
  thereSuchLine: 'There is no such line',
  whatPeopleChange: 'What people change, and what they are refused, is a line of the audit log.',
  showEarlierLines: 'Show earlier lines',
  theseLinesCsv: 'These lines as CSV',
  by: 'By',
  ada: 'ada',
  action: 'Action',
  jobStopJob: 'job.stop, or job',
  resource: 'Resource',
  userAdaUser: 'user:ada, or user',
  filter: 'Filter',
  howFarLook: 'How far to look back',
  d: { one: '{count} d', other: '{count} d' },
  all: 'all',
  onlyRefused: 'Only refused',
  when: 'When',
  rule: 'Rule',
  refused: 'refused',
  openJob: 'Open job {job}',
  open: 'Open',
  only: 'Only {text}',
});
