// @vitest-environment happy-dom
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, describe, expect, it } from 'vitest';
import type { MachineFacts, NetworkWay, PreflightReport } from '../api/types';
import { PreflightCard } from './JobPreflight';

afterEach(cleanup);

const way: NetworkWay = { source: 'worker-0', target: 'worker-1', level: 'rack', bytesPerSecond: 1.25e9, latencySeconds: 2.5e-5, slow: '' };
const slow: NetworkWay = { ...way, source: 'worker-1', target: 'worker-0', bytesPerSecond: 8e7, slow: '80 MB/s, and 1.25 GB/s is usual within a rack' };
const plain: MachineFacts = {
  host: 'n0',
  kernel: '',
  os: '',
  processor: '',
  processors: 0,
  sockets: null,
  clock: '',
  governors: {},
  throttled: null,
  hugePages: '',
  swappiness: null,
  numaBalancing: null,
  memory: { total: 0, available: 0, pageCache: 0, dirty: 0, swapTotal: 0, swapFree: 0, hugePagesReserved: 0 },
  numa: [],
  pci: [],
  disks: [],
  drivers: {},
  pressure: {},
  workFolder: { bytes: 0, free: 0 },
};
const found: PreflightReport = {
  attempt: 0,
  checks: ['network'],
  platform: null,
  network: {
    at: '2026-11-28T12:00:00Z',
    tasks: 2,
    seconds: 0.52,
    levels: [{ level: 'rack', ways: 2, bytesPerSecond: 6.65e8, latencySeconds: 2.5e-5 }],
    ways: [way, slow],
    ring: [way, slow],
    findings: ['From worker-1 on a to worker-0 on b: 80 MB/s, and 1.25 GB/s is usual within a rack.'],
  },
};

describe('what a gang measured before its start', () => {
  it('is a sentence, its findings, and the slowest ways first', () => {
    render(<PreflightCard found={found} />);
    expect(screen.getByText('2 tasks measured 2 ways between them in 0.5 s. While all send at once in a ring, worker-1 sends the least: 80 MB/s.')).toBeDefined();
    expect(screen.getByRole('listitem').textContent).toContain('From worker-1 on a to worker-0 on b');
    expect(screen.getByRole('row', { name: 'rack 2 665 MB/s 25 µs' })).toBeDefined();
    const rows = screen.getAllByRole('row').map((row) => row.textContent);
    expect(rows.slice(-2)).toEqual(['worker-1worker-0rack, slow80 MB/s25 µs', 'worker-0worker-1rack1.25 GB/s25 µs']);
  });

  it('names what slows tasks on a machine beside what the machine is like', () => {
    const facts = { ...plain, kernel: '6.1.0', processors: 64, processor: 'EPYC 9354', memory: { ...plain.memory, total: 2 ** 38 } };
    const machine = { task: 'worker-0', node: 'local/n0', facts, findings: ['Transparent huge pages are off; madvise lets programs ask for them.'] };
    const platform = { at: '2026-11-28T12:00:00Z', machines: [machine], differences: [] };
    render(<PreflightCard found={{ ...found, checks: ['platform'], network: null, platform }} />);
    expect(screen.getByRole('listitem').textContent).toBe(`local/n0: ${machine.findings[0]}`);
    expect(screen.getByRole('row', { name: 'local/n0 6.1.0 64 × EPYC 9354 256 GiB 0 MiB 0' })).toBeDefined();
    cleanup();
    render(<PreflightCard found={{ ...found, checks: ['platform'], network: null, platform: { ...platform, machines: [{ ...machine, findings: [] }] } }} />);
    expect(screen.getByText('Nothing that slows tasks was found.')).toBeDefined();
  });

  it('says that nothing was told yet', () => {
    render(<PreflightCard found={{ ...found, network: null }} />);
    expect(screen.getByText('No task has told of its network yet.')).toBeDefined();
  });
});
