/** The texts of receipts: what a job that had to yield is told. */

import { part } from '../language';

export const receipts = part('receipts', {
  receipts: 'Receipts',
  latestFirst: 'the latest first',
  nothingYield: 'Nothing had to yield',
  emptyNote: 'A job that makes room for another, leaves a drained node or is suspended gets a receipt here and keeps its place in the queue.',
  loading: 'Loading',
  showOlderReceipts: 'Show older receipts',
  yield: 'Had to yield',
  noFailureCounted: 'no failure, and counted as none',
  ago: 'Ago',
  job: 'Job',
  rule: 'Rule',
  why: 'Why',
  gaveUp: 'Gave up',
  lostMost: 'Lost at most',
  back: 'Back',
  itsJob: 'its job',
  unknownWhen: 'not yet: unknown when',
  likelyIn: 'not yet: likely in {time}',
  late: 'not yet: later than thought',
  never: 'never: the job ended',
  after: 'after {time}',
  latestFirstOf: 'the latest first, given or caused by {queue}',
  nothing: 'nothing',
  lost: { hours: '{amount} device-hours', minutes: '{amount} device-minutes', seconds: '{amount} device-seconds' },
  until: { suspended: 'when it is resumed', budget: 'when its budget allows more' },
});
