import { describe, expect, it } from 'vitest';
import type { SeriesView } from '../api/types';
import { inWords, named, nameOf, picture, tellingLabels } from './series';

const series = (mean: (number | null)[], more: Partial<SeriesView> = {}): SeriesView => ({
  family: 'corral_job_loss',
  labels: { job: 'j1' },
  mean,
  low: mean,
  high: mean,
  ...more,
});

describe('a series', () => {
  it('is a line from the least to the greatest value', () => {
    expect(picture(series([0, 1, 2]), 30, 10)).toEqual({ line: 'M5 10L15 5L25 0', dots: '', band: '', low: 0, high: 2, last: 2 });
  });
  it('has a band where a step has several values', () => {
    expect(picture(series([1, 1], { low: [0, 1], high: [2, 1] }), 20, 10)?.band).toBe('M5 0L15 5L15 5L5 10Z');
  });
  it('is joined over short gaps and ends at long ones', () => {
    expect(picture(series([1, null, 2]), 30, 10)?.line).toBe('M5 10L25 0');
    const long = [1, ...Array<null>(30).fill(null), 2];
    expect(picture(series(long), 320, 10)?.dots).toBe('M5 10h0M315 0h0');
  });
  it('is named by its tag where it is a curve of an event file', () => {
    const curve = (tag: string, run = '') => series([1], { family: 'corral_job_scalar', labels: { job: 'j1', task: 'worker-0', run, tag } });
    const names = (...items: SeriesView[]) => items.map((each) => nameOf(each, tellingLabels(items)));
    expect(names(curve('loss'))).toEqual(['loss (TensorBoard)']);
    expect(names(curve('loss', 'a'), curve('loss', 'b'), series([1]))).toEqual(['loss (TensorBoard, a)', 'loss (TensorBoard, b)', 'loss']);
    expect(names(curve('loss'), curve('rate'))).toEqual(['loss (TensorBoard)', 'rate (TensorBoard)']);
  });
  it('has no picture without a value', () => {
    expect(picture(series([null, null]), 30, 10)).toBeNull();
    expect(picture(series([]), 30, 10)).toBeNull();
  });
  it('lies in the middle where nothing changes', () => {
    expect(picture(series([5, 5]), 20, 10)?.line).toBe('M5 5L15 5');
  });
  it('is named by its figure and its labels, and told in words', () => {
    const task = (index: string) => series([1], { family: 'task_cpu_percent', labels: { job: 'j1', role: 'worker', index } });
    expect(nameOf(task('0'), tellingLabels([task('0'), task('1')]))).toBe('task cpu percent (0)');
    expect(nameOf(task('0'), tellingLabels([task('0'), series([1])]))).toBe('task cpu percent');
    const shown = picture(series([2.5, 0.00012]), 20, 10);
    expect(shown && inWords('loss', shown)).toBe('loss: last 1.20e-4, between 1.20e-4 and 2.5');
    const answer = { begin: '', end: '', step: 15, leftOut: 0, items: [series([1]), series([1], { family: 'corral_job_batch_size' })] };
    expect(named(answer).reported.map(([name]) => name)).toEqual(['batch size', 'loss']);
    expect(named({ ...answer, items: [task('0'), task('1')] }).measured).toHaveLength(2);
  });
});
