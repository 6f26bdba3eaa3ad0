/** The texts of devices over time: bars by node, and the table behind them. */

import { part } from '../language';

export const timeline = part('timeline', {
  title: 'Devices over time',
  lookAround: 'How far to look back and ahead',
  hours: '{hours} h',
  note: 'Left of now is what ran; right of it, in broken lines, is one course of the forecast: run times are drawn from those of ended jobs, and no new job arrives.',
  noNode: 'No node with devices is known',
  byNode: 'Devices by node over time',
  showMoreNodes: 'Show more nodes',
  leftOut: {
    one: '{count} stay left out; choose a node, or fewer hours.',
    other: '{count} stays left out; choose a node, or fewer hours.',
  },
  node: 'Node',
  allNodes: 'all',
  asTable: 'As a table',
  nothingThere: 'Nothing was on these devices, and nothing is expected there.',
  devices: 'Devices',
  job: 'Job',
  user: 'User',
  queue: 'Queue',
  from: 'From',
  to: 'To',
  expected: 'expected',
  later: 'later',
  runs: 'runs',
  showMoreLines: { one: 'Show {count} more line', other: 'Show {count} more lines' },
  now: 'now',
  nodeSpoken: {
    one: '{node}, {count} device: jobs that were here {was}, that run {runs}, that are expected {comes}',
    other: '{node}, {count} devices: jobs that were here {was}, that run {runs}, that are expected {comes}',
  },
  stay: '{job} of {user}, queue {queue}: {devices} from {begin} {end}',
  stayExpected: '{job} of {user}, queue {queue}: {devices} expected from {begin} {end}',
  untilTime: 'until {time}',
  untilNow: 'until now',
  untilAfterForecast: 'until after the forecast ends',
});
