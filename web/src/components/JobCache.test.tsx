// @vitest-environment happy-dom
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, describe, expect, it } from 'vitest';
import type { CacheUse, JobCache } from '../api/types';
import { CacheCard } from './JobCache';

afterEach(cleanup);

const use: CacheUse = {
  attempt: 'j.0.worker.0.0',
  role: 'worker',
  index: 0,
  at: '2026-11-28T12:00:00Z',
  key: 'k',
  hit: true,
  facts: {},
  digest: 'd',
  bytes: 3 * 2 ** 20,
  files: 12,
  restoreSeconds: 0.5,
  newFiles: 1,
  firstStepSeconds: 4,
  coldSeconds: 49.5,
  savedSeconds: 45,
  published: '',
  publishedBytes: 0,
  refused: '',
};
const miss: CacheUse = { ...use, attempt: 'j.0.worker.1.0', index: 1, hit: false, files: 0, bytes: 0, newFiles: null, firstStepSeconds: null, savedSeconds: null };
const said: JobCache = { share: 'user', source: 'job', queue: '', hits: 1, tasks: 2, bytes: use.bytes, savedSeconds: 45, uses: [use, miss] };

describe('what tasks made of compiled code', () => {
  it('is a sentence with bytes and seconds, and a row for each task', () => {
    render(<CacheCard said={said} />);
    expect(screen.getByText('1 of 2 tasks started from compiled code, 3 MiB in all, which saved 45s.')).toBeDefined();
    expect(screen.getByRole('row', { name: 'worker-0 12 files, 3 MiB 1 file 4s 45s' })).toBeDefined();
    expect(screen.getByRole('row', { name: /^worker-1 nothing/ })).toBeDefined();
  });

  it('names whose default it is, and says nothing of it where the job decides', () => {
    const { rerender } = render(<CacheCard said={said} />);
    expect(screen.queryByText(/leaves it to/)).toBeNull();
    rerender(<CacheCard said={{ ...said, source: 'queue', queue: 'vision' }} />);
    expect(screen.getByText('The job file leaves it to the queue vision, which says compileCache: user.')).toBeDefined();
    rerender(<CacheCard said={{ ...said, share: 'job', source: 'server' }} />);
    expect(screen.getByText('The job file leaves it to the server, which says compileCache: job.')).toBeDefined();
  });

  it('claims no saving that is not known, and names a refusal', () => {
    const refused = { ...miss, refused: 'it is not what was published' };
    render(<CacheCard said={{ ...said, hits: 0, savedSeconds: null, uses: [refused] }} />);
    expect(screen.getByText('None of 2 tasks found compiled code; all compiled anew.')).toBeDefined();
    expect(screen.getByRole('row', { name: /refused: it is not what was published/ })).toBeDefined();
  });
});
