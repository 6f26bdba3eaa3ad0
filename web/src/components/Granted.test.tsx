// @vitest-environment happy-dom
import { cleanup, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, it, vi } from 'vitest';
import { Granted } from './Granted';

afterEach(cleanup);
const WORDS = { choose: 'A queue', add: 'Grant', remove: 'Take back {name}' };

function show(offered: string[] | null) {
  const onAdd = vi.fn();
  const onRemove = vi.fn();
  render(<Granted label="Queues" items={['vision']} offered={offered} words={WORDS} none="No queue." pending={false} onAdd={onAdd} onRemove={onRemove} />);
  return { onAdd, onRemove };
}

it('adds what is written and takes back what is there', async () => {
  const { onAdd, onRemove } = show(['vision', 'speech', '*']);
  expect([...document.querySelectorAll('option')].map((each) => each.value)).toEqual(['speech', '*']);
  await userEvent.type(screen.getByLabelText('A queue'), ' speech{Enter}');
  expect(onAdd).toHaveBeenCalledWith('speech');
  await userEvent.click(screen.getByLabelText('Take back vision'));
  expect(onRemove).toHaveBeenCalledWith('vision');
});

it('is only read by who may not change it', () => {
  show(null);
  expect(screen.getByRole('group', { name: 'Queues' }).textContent).toContain('vision');
  expect(screen.queryAllByRole('button')).toEqual([]);
});
