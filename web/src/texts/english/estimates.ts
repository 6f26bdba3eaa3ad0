/** The texts of how good the estimates of starts were. */

import { part } from '../language';

export const estimates = part('estimates', {
  title: 'Estimates',
  lookBack: 'How far to look back',
  days: { one: '{count} day', other: '{count} days' },
  empty: 'No estimate was given',
  emptyNote: 'Estimates that people are given of when waiting jobs start are compared here with what then happened.',
  byQueue: 'Estimates by queue',
  columns: {
    queue: 'Queue',
    given: 'Given',
    held: 'Held',
    width: 'Width',
    waitsSpread: 'Waits spread',
    starts: 'Starts',
    error: 'Error',
    stillWait: 'Still wait',
  },
  all: 'all',
  chart: 'Chart of estimates',
  pictureOf: '{queue}: {words}',
  nothingToJudge: 'nothing to judge yet',
  held: { one: '{percent} % of {count} interval held', other: '{percent} % of {count} intervals held' },
  unbiased: 'none',
  later: '{time} later',
  earlier: '{time} earlier',
  widths: 'width {width}, waits spread over {spread}, starts {bias}',
  chartShows: 'What the chart shows',
  legend: {
    aim: 'aim: 70 to 90 % of the intervals from P10 to P90 hold',
    within: 'within it',
    outside: 'outside it',
    width: 'median width of the intervals',
    waits: 'P10 to P90 of the waits themselves',
  },
});
