// @vitest-environment happy-dom
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, describe, expect, it } from 'vitest';
import type { Hang, RankScore } from '../api/types';
import { HangsCard, RanksCard } from './JobRanks';

afterEach(cleanup);

const rank: RankScore = { task: 'worker-0', node: 'local/n1', step: 1200, stepsPerSecond: 2, score: 1, behindSeconds: 0, waits: null };
const slow: RankScore = { ...rank, task: 'worker-2', step: 600, stepsPerSecond: 1, score: 0.5 };
const hang: Hang = {
  at: '2026-11-28T12:00:00Z',
  silentSeconds: 600,
  why: 'worker-2 is stopped in all_reduce at train.py:10; 3 others wait.',
  odd: ['worker-2'],
  collective: 'all_reduce',
  number: 3,
  place: 'train.py:10',
  action: 'restart',
  bundle: 'b1',
  bytes: 2048,
};

describe('the pace of the tasks of a gang', () => {
  it('names the one that is slow, with its figure', () => {
    render(<RanksCard ranks={[slow, rank]} />);
    expect(screen.getByText('worker-2 works at 50 % of the pace of its peers.')).toBeDefined();
    expect(screen.getByRole('row', { name: 'worker-2 local/n1 600 1.00 50 %' })).toBeDefined();
  });

  it('shows how long each waits where that is told', () => {
    render(<RanksCard ranks={[{ ...slow, waits: 0.05 }, { ...rank, waits: 0.55 }]} />);
    expect(screen.getByRole('columnheader', { name: 'Waits for peers' })).toBeDefined();
    expect(screen.getByRole('row', { name: 'worker-2 local/n1 600 1.00 50 % 5 %' })).toBeDefined();
  });

  it('is calm where all keep pace, and counts those that it leaves out', () => {
    const many = Array.from({ length: 11 }, (_, at) => ({ ...rank, task: `worker-${at}` }));
    render(<RanksCard ranks={many} />);
    expect(screen.getByText('All of its tasks that report steps keep pace.')).toBeDefined();
    expect(screen.getAllByRole('row')).toHaveLength(9);
    expect(screen.getByText('and 3 that are faster')).toBeDefined();
  });

  it('claims nothing of a task without a score', () => {
    render(<RanksCard ranks={[{ ...rank, task: 'worker-1', stepsPerSecond: null, score: null }, rank]} />);
    expect(screen.getByText('All of its tasks that report steps keep pace.')).toBeDefined();
  });
});

describe('the times that a job hung', () => {
  it('say what its ranks did, what was done, and where the evidence is', () => {
    render(<HangsCard hangs={[hang]} address={(bundle) => `/there/${bundle}`} />);
    expect(screen.getByText(/worker-2 is stopped in all_reduce/).textContent).toContain('It was restarted.');
    expect(screen.getByText(/without progress/).textContent).toContain('after 10m without progress');
    expect(screen.getByRole('link').getAttribute('href')).toBe('/there/b1');
  });

  it('offer no bundle to those who may not enter its tasks, nor where there is none', () => {
    render(<HangsCard hangs={[hang]} address={null} />);
    expect(screen.queryByRole('link')).toBeNull();
    cleanup();
    render(<HangsCard hangs={[{ ...hang, bundle: '' }]} address={(bundle) => bundle} />);
    expect(screen.queryByRole('link')).toBeNull();
  });
});
