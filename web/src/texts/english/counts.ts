/** Numbers of things: jobs, tasks, devices and the like, with their plurals. */

import { part } from '../language';

export const counts = part('counts', {
  jobs: { one: '{count} job', other: '{count} jobs' },
  devices: { one: '{count} device', other: '{count} devices' },
  processors: { one: '{count} processor', other: '{count} processors' },
  tasks: { one: '{count} task', other: '{count} tasks' },
  hours: { one: '{count} hour', other: '{count} hours' },
  courses: { one: '{count} course', other: '{count} courses' },
  alerts: { one: '{count} alert', other: '{count} alerts' },
  moreNodes: { one: '{count} more node', other: '{count} more nodes' },
  nodes: { one: '{count} node', other: '{count} nodes' },
  others: { one: '{count} other', other: '{count} others' },
  files: { one: '{count} file', other: '{count} files' },
  ways: { one: '{count} way', other: '{count} ways' },
  ranks: { one: '{count} rank', other: '{count} ranks' },
  moreApplications: { one: '{count} more application', other: '{count} more applications' },
  gangs: { one: '{count} gang', other: '{count} gangs' },
  users: { one: '{count} user', other: '{count} users' },
  members: { one: '{count} member', other: '{count} members' },
  queues: { one: '{count} queue', other: '{count} queues' },
  queuesThatTheyManage: { one: '{count} queue that they manage', other: '{count} queues that they manage' },
  storages: { one: '{count} storage', other: '{count} storages' },
});
