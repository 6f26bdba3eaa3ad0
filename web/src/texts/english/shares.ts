/** The texts of a queue's share: its bar, and what a waiting gang needs. */

import { part } from '../language';

export const shares = part('shares', {
  barsShow: 'What the bars show',
  used: '{amount} used',
  borrowed: '{amount} of them borrowed',
  own: '{amount} its own',
  lent: '{amount} lent',
  limit: 'limit {amount}',
  legend: {
    own: 'uses of its own',
    borrowed: 'borrows',
    idle: 'its own, idle or lent',
    guaranteed: 'never lent',
    fair: 'fair share now',
    limit: 'limit',
  },
  modelDevices: { one: '{count} {model} device', other: '{count} {model} devices' },
  processors: '{amount} processors',
  inTasks: '{what} in {tasks}',
  inOne: '{what}, one {level}',
  more: '{what} more',
});
