/** The texts of the page of the server's own parts. */

import { part } from '../language';

export const server = part('server', {
  title: 'Server',
  parts: 'Parts of the server',
  troubled: {
    one: '✕ {count} part of {all} does not work in full.',
    other: '✕ {count} parts of {all} do not work in full.',
  },
  allWork: '✓ All {count} parts work.',
  part: 'Part',
  state: 'State',
  version: 'Version',
  lacking: 'What does not work',
  kinds: {
    front: 'API and portal',
    scheduler: 'Scheduler',
    store: 'Database',
    engine: 'Engine',
    agent: 'Agent of a node',
    machine: 'Machine of the scheduler',
    containers: 'Containers',
    exporter: 'Exporter',
  },
  states: {
    ok: '● works',
    degraded: '◌ works in part',
    away: '✕ does not answer',
  },
  notTold: 'not told',
  differ: '◌ The API is version {front} and the scheduler {scheduler}: restart the server.',
  noAgents: 'No agents of other machines are asked; what each device does is then known of this machine alone.',
  elsewhere: 'What machines do is on {nodes}, what is wrong with them among {alerts}.',
});
