// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { RoleChoice } from './RoleChoice';

afterEach(cleanup);

it.each([
  ['Bad Role', 'A role is named by a-z, 0-9 and -, with a letter or digit at both ends.'],
  ['worker', 'The job has a role worker already.'],
])('says why a role cannot be called %s, and adds none', (name, why) => {
  const changed = vi.fn();
  render(<RoleChoice text={'roles:\n  worker: {command: "true"}\n'} roles={['worker']} role="worker" onChoose={changed} onText={changed} />);
  const field = screen.getByRole('textbox', { name: 'New role' });
  expect(screen.getByRole('status').textContent).toBe('');
  fireEvent.change(field, { target: { value: name } });
  expect(screen.getByRole('status').textContent).toBe(why);
  fireEvent.keyDown(field, { key: 'Enter' });
  expect(changed).not.toHaveBeenCalled();
  fireEvent.change(field, { target: { value: 'server' } });
  expect(screen.getByRole('status').textContent).toBe('');
  fireEvent.click(screen.getByRole('button', { name: 'Add role' }));
  expect(changed).toHaveBeenCalledWith('server');
});
