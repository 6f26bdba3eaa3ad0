/** The texts of what jobs asked for and used. */

import { part } from '../language';

export const efficiency = part('efficiency', {
  title: 'Efficiency',
  titleOfUser: 'Efficiency of {user}',
  summary: 'Summary',
  jobsOfUser: 'Jobs of {user}',
  jobsInQueue: 'Jobs in {queue}',
  jobs: 'Jobs',
  yourJobs: 'Your jobs',
  empty: 'No job ran in this time',
  emptyNote: 'Choose a longer time, or another queue or user. A job counts from the start of its first task.',
  held: '{whose} held {hours} device-hours.',
  lost: 'Attempts that came to nothing held {hours} of them.',
  couldAskLess: {
    one: 'Of {count} job {smaller} could have asked for less.',
    other: 'Of {count} jobs {smaller} could have asked for less.',
  },
  wouldHaveSpared: 'With as many devices as would have done they would have held {hours} device-hours less.',
  leftOut: {
    one: '{count} smaller job counts in the device-hours alone.',
    other: '{count} smaller jobs count in the device-hours alone.',
  },
  noDevices: 'They held no devices.',
  notMeasured: 'The use of their devices was not measured.',
  measured: 'Their devices were used to {part}; {hours} device-hours were not used.',
  measuredInPart: 'Of {measured} the use was measured: the devices were used to {part}; {hours} device-hours were not used.',
  maxDuration: 'maxDuration {time}',
  roleRequest: '{role}: {request}',
  users: 'Users',
  user: 'User',
  job: 'Job',
  deviceHours: 'Device-hours',
  used: 'Used',
  lostHours: 'Lost',
  wouldHaveDone: 'Would have done',
  wouldHaveDoneNarrow: 'would have done: {requests}',
  inWords: 'In words',
  inWordsOf: 'In words: {job}',
  useNotMeasured: 'The use of its devices was not measured.',
});
