// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { useState } from 'react';
import { afterEach, expect, it } from 'vitest';
import { JOB_GROUPS, ROLE_GROUPS } from '../lib/jobfields';
import { MoreFields } from './MoreFields';

afterEach(cleanup);

let text = '';
function Form({ begun, groups = JOB_GROUPS }: { begun: string; groups?: typeof JOB_GROUPS }) {
  const [now, setNow] = useState(begun);
  text = now;
  return <MoreFields groups={groups} text={now} role="worker" disabled={false} onText={setNow} />;
}
const ROLES = 'roles:\n  worker: {command: "true"}\n';
const type = (label: string, value: string) => fireEvent.change(screen.getByLabelText(label), { target: { value } });
const value = (label: string) => (screen.getByLabelText(label) as HTMLInputElement).value;

it('keeps what is typed while it cannot be written, and says what to write', () => {
  render(<Form begun={ROLES} />);
  type('Rules on labels of its nodes', 'zone in (a');
  expect(text).toBe(ROLES);
  expect(screen.getByText(/^Write zone in \(a, b\)/)).toBeTruthy();
  type('Rules on labels of its nodes', 'zone in (a)');
  expect(text).toBe(`nodes: {expressions: [{key: zone, operator: In, values: [a]}]}\n${ROLES}`);
  expect(screen.queryByText(/^Write zone/)).toBeNull();
});

it('leaves the order of typed names alone, whatever the order in the file', () => {
  render(<Form begun={`parameters: {a: "1", b: "2"}\n${ROLES}`} />);
  type('Parameters', 'ax=1\nb=2');
  expect(text).toBe(`parameters: {b: "2", ax: "1"}\n${ROLES}`);
  expect(value('Parameters')).toBe('ax=1\nb=2');
});

it('counts what the file has of each group, and chooses by words', () => {
  render(<Form begun={`sharing: exclusive\nnetwork: rdma\n${ROLES}`} />);
  expect(screen.getByText('Nodes, spread, sharing and network: 2 in the file')).toBeTruthy();
  expect([value('Nodes for itself'), value('Network with RDMA')]).toEqual(['true', 'required']);
  type('Network with RDMA', '');
  type('One task on a node', 'true');
  expect(text).toBe(`sharing: {exclusive: true, oneTaskPerNode: true}\n${ROLES}`);
});

it('checks words of a list, and leaves those that it does not know', () => {
  render(<Form begun={`notifications: [failed, melted]\n${ROLES}`} />);
  const box = (name: string) => screen.getByRole('checkbox', { name, hidden: true }) as HTMLInputElement;
  expect([box('failed').checked, box('melted').checked, box('hangs').checked]).toEqual([true, true, false]);
  fireEvent.click(box('hangs'));
  fireEvent.click(box('failed'));
  expect(text).toBe(`notifications: [melted, hung]\n${ROLES}`);
});

it('greys a field whose value its text cannot say', () => {
  render(<Form begun={`nodes: {expressions: [{key: zone, values: ["a b"]}]}\n${ROLES}`} />);
  const field = screen.getByLabelText('Rules on labels of its nodes') as HTMLTextAreaElement;
  expect([field.disabled, field.placeholder]).toEqual([true, 'written in the file']);
  expect((screen.getByLabelText('Only on these nodes') as HTMLInputElement).disabled).toBe(false);
});

it('writes the fields of a role into it', () => {
  render(<Form begun={ROLES} groups={ROLE_GROUPS} />);
  type('Shared memory each', '1Gi');
  type('This role within one', 'rack');
  expect(text).toBe('roles:\n  worker: {shm: "1Gi", command: "true", topology: {required: rack}}\n');
});
