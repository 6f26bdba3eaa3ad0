// @vitest-environment happy-dom
import { cleanup, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ApiError } from '../api/client';
import type { AppliedDocument, Finding } from '../api/types';
import { Consequences } from './Consequences';
import type { DraftTrial } from './useTrial';

afterEach(cleanup);

const changed: AppliedDocument = { kind: 'Queue', name: 'vision', revision: 3, action: 'changed', diff: '--- a\n+++ b\n@@ -1,1 +1,1 @@\n-devices: 8\n+devices: 4\n' };
const finding: Finding = { message: 'queues.vision.cells[0]: 40 cells', queue: 'vision', level: 'node', model: '', needed: 40, available: 4, preemptible: false };
const problem = { path: 'wieght', message: 'unknown field', line: 3, column: 1, file: '' };
const trial = (change: Partial<DraftTrial>): DraftTrial => ({ text: '', problems: [], documents: [changed], findings: [], refusal: null, ...change });

describe('the verdict on a draft', () => {
  it.each([
    ['nothing stands against it', trial({}), 'It can be applied'],
    ['nothing changes', trial({ documents: [{ ...changed, action: 'unchanged', diff: '' }] }), 'This revision is in force'],
    ['it has problems', trial({ documents: [], problems: [problem] }), 'cannot be read yet'],
    ['it breaks what nothing lifts', trial({ findings: [finding] }), 'would break a guarantee'],
    ['jobs would have to yield', trial({ findings: [{ ...finding, preemptible: true }] }), 'if jobs yield'],
    ['the server refuses it', trial({ refusal: new ApiError(503, 'unavailable', 'The scheduler does not answer.') }), 'cannot be applied now'],
  ])('when %s', (_, given, words) => {
    render(<Consequences trial={given} current again={() => undefined} />);
    expect(screen.getByRole('status').textContent).toContain(words);
  });

  it('can be asked for again where the server refused', async () => {
    const again = vi.fn();
    render(<Consequences trial={trial({ refusal: new ApiError(503, 'unavailable', 'The scheduler does not answer.') })} current again={again} />);
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }));
    expect(again).toHaveBeenCalledOnce();
  });

  it('comes with the numbers of what would break and with the lines that change', () => {
    render(<Consequences trial={trial({ findings: [finding] })} current again={() => undefined} />);
    expect(screen.getByLabelText('Guarantees that it would break').textContent).toContain('queues.vision.cells[0]: 40 cells.');
    expect(screen.getByRole('region', { name: 'Difference in Queue/vision' }).textContent).toContain('devices: 4');
    expect(screen.getByRole('heading').textContent).toBe('Queue/vision changes, from revision 3');
  });
});
