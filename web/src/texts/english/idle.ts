/** The texts of idle devices: their list, the notice on a job's page, and more time. */

import { part } from '../language';

export const idle = part('idle', {
  done: { stop: 'stopped', shrink: 'shrunk to its minimum', suspend: 'suspended' },
  stands: {
    done: '✕ {done}',
    acted: '✕ acted on',
    actedDry: '✕ reported',
    warnedDry: '▲ reported',
    warned: '▲ warned',
    extended: '◷ more time',
    idle: '◌ idle',
    busy: '● in use',
  },
  wouldHaveBeen: 'would have been {done}',
  was: 'was {done}',
  wasActedOn: 'was acted on',
  wouldBe: 'would be {done}',
  is: 'is {done}',
  nothingMore: 'nothing more is done',
  some: { one: '{count} of its {devices} is idle', other: '{count} of its {devices} are idle' },
  only: 'Its device is idle',
  wasted: '{devices}; {hours} device-hours are wasted.',
});
