/** The texts of the checks of nodes before a job starts. */

import { part } from '../language';

export const preflight = part('preflight', {
  networkBeforeStart: 'Network before the start',
  taskHasTold: 'No task has told of its network yet.',
  machinesBeforeStart: 'Machines before the start',
  taskHasToldMachine: 'No task has told of its machine yet.',
  nothingSlowsTasks: 'Nothing that slows tasks was found.',
  machines: 'Machines',
  node: 'Node',
  kernel: 'Kernel',
  processors: 'Processors',
  memory: 'Memory',
  pageCache: 'Page cache',
  numaNodes: 'NUMA nodes',
  unknown: 'unknown',
  usualFiguresCloseness: 'Usual figures by closeness',
  within: 'Within',
  ways: 'Ways',
  medianRate: 'Median rate',
  medianLatency: 'Median latency',
  theSlowestOf: 'The slowest {ways} of {ways2}',
  allWaysSlowest: 'All ways, the slowest first',
  from: 'From',
  to: 'To',
  rate: 'Rate',
  latency: 'Latency',
  slow: '{level}, slow',
  whileAllSend: '{tasks} measured {ways} between them in {seconds} s. While all send at once in a ring, {source} sends the least: {rate}.',
  measured: '{tasks} measured {ways} between them in {seconds} s.',
  processorsOf: '{processors} × {processor}',
});
