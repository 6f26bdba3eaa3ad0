/** Numbers of things: jobs, tasks, devices and the like, with their plurals. */

import { part } from '../language';

export const counts = part('counts', {
  jobs: { one: '{count} job', other: '{count} jobs' },
  devices: { one: '{count} device', other: '{count} devices' },
  tasks: { one: '{count} task', other: '{count} tasks' },
  hours: { one: '{count} hour', other: '{count} hours' },
  courses: { one: '{count} course', other: '{count} courses' },
  alerts: { one: '{count} alert', other: '{count} alerts' },
});
