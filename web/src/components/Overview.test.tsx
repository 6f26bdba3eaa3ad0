import { expect, it } from 'vitest';
import type { JobDetail } from '../api/types';
import { placedOf, targetsOf } from './Overview';

function targeted(targetReplicas?: Record<string, number>): JobDetail {
  return { document: { spec: { replicaSpec: { role: 'worker', replicas: 4, targetReplicas } } } } as unknown as JobDetail;
}

it('says what the scheduler gives a job on which node', () => {
  expect(targetsOf(targeted({ 'local/node1': 2, 'local/node2': 1 }))).toBe('; target 2 on local/node1, 1 on local/node2');
});

it('says nothing of a job that has no places', () => {
  expect(targetsOf(targeted({}))).toBe('');
  expect(targetsOf(targeted())).toBe('');
});

it('names the first nodes of many', () => {
  const many = Object.fromEntries(Array.from({ length: 6 }, (_, node) => [`local/n${node}`, 8]));
  expect(targetsOf(targeted(many))).toMatch(/8 on local\/n3 and 2 more nodes$/);
});

it('counts the nodes on which tasks still hold devices, not those where tasks have ended', () => {
  const on = (node: string, state: string) => ({ node, state });
  const placement = [on('node1', 'completed'), on('node2', 'running'), on('node3', 'running'), on('node3', 'attempt-completed')];
  const job = { state: 'running', devices: 8, devicesHeld: 6, placement } as unknown as JobDetail;
  expect(placedOf(job)).toBe('6 devices on 2 nodes');
});
