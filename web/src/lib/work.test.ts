import { expect, test } from 'vitest';
import { numbersOf } from './work';

const nothing = { at: '', progress: null, step: null, steps: null, throughput: null, loss: null, gradientNoise: null, batchSize: null, active: null };

test('only what the program said is shown', () => {
  expect(numbersOf(nothing)).toEqual([]);
  expect(numbersOf({ ...nothing, step: 1200, steps: 5000, loss: 0.31416, throughput: 12345.6, gradientNoise: 900 })).toEqual([
    'step 1,200 of 5,000',
    'loss 0.3142',
    '12,350/s',
    'gradient noise 900',
  ]);
  expect(numbersOf({ ...nothing, step: 7, loss: 0.00002, throughput: 0 })).toEqual(['step 7', 'loss 2.00e-5', '0/s']);
});
