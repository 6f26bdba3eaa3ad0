// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { PasswordForm } from './PasswordForm';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const NEEDED = { code: 'old-password-needed', message: 'Send the old password with the new one.' };
type Answer = [status: number, body: object];

/** Shows the form of an account; each answer is given to one change that is sent. */
async function show({ hasPassword = true, answers = [] }: { hasPassword?: boolean; answers?: Answer[] }) {
  const sent: object[] = [];
  const onChanged = vi.fn();
  vi.stubGlobal('fetch', (_: string, { method, body }: RequestInit) => {
    const [status, said]: Answer = method === 'POST' ? answers[sent.push(JSON.parse(String(body))) - 1]! : [200, { name: 'ada', hasPassword }];
    return Promise.resolve(new Response(JSON.stringify(said), { status }));
  });
  render(
    <QueryClientProvider client={new QueryClient()}>
      <PasswordForm user="ada" onChanged={onChanged} />
    </QueryClientProvider>,
  );
  await screen.findByLabelText('New password');
  return { sent, onChanged };
}

async function fill(chosen: string, again = chosen) {
  await userEvent.clear(screen.getByLabelText('New password'));
  await userEvent.type(screen.getByLabelText('New password'), chosen);
  await userEvent.clear(screen.getByLabelText('New password again'));
  await userEvent.type(screen.getByLabelText('New password again'), `${again}{Enter}`);
}

/** The field is marked, has the focus, and names the message as its description. */
function refused(label: string, message: string) {
  const field = screen.getByLabelText(label);
  expect(screen.getByRole('alert').textContent).toBe(message);
  expect(field.getAttribute('aria-invalid')).toBe('true');
  expect(field.getAttribute('aria-describedby')?.split(' ')).toContain(screen.getByRole('alert').id);
  expect(document.activeElement).toBe(field);
}

describe('the form of one’s own password', () => {
  it.each([
    ['differ', 'battery staple', 'battery stable', 'New password again', 'The two new passwords differ.'],
    ['are short', 'staple', 'staple', 'New password', 'A password has 8 to 1024 characters.'],
  ])('sends nothing while the new ones %s', async (_, chosen, again, label, message) => {
    const { sent } = await show({});
    await fill(chosen, again);
    refused(label, message);
    expect(sent).toEqual([]);
  });

  it('hands on the notice of a change', async () => {
    const { sent, onChanged } = await show({ answers: [[200, { notice: 'All sign-ins have ended.' }]] });
    expect(screen.queryByLabelText('Old password')).toBeNull();
    await fill('battery staple');
    await vi.waitFor(() => expect(onChanged).toHaveBeenCalledExactlyOnceWith('All sign-ins have ended.'));
    expect(sent).toEqual([{ password: 'battery staple', oldPassword: '', keepTokens: false }]);
  });

  it('asks for the old password where the server does, and keeps API tokens', async () => {
    const wrong = { code: 'wrong-old-password', message: 'The old password is wrong.' };
    const { sent, onChanged } = await show({ answers: [[403, NEEDED], [403, wrong], [200, { notice: '' }]] });
    await userEvent.click(screen.getByLabelText('Keep API tokens'));
    await fill('battery staple');
    const old = await screen.findByLabelText('Old password');
    expect(old.getAttribute('autocomplete')).toBe('current-password');
    refused('Old password', 'You signed in too long ago; enter the old password, too.');
    await userEvent.type(old, '{Enter}');
    refused('Old password', 'Enter the old password.');
    await userEvent.type(old, 'wrong horse{Enter}');
    await screen.findByText('The old password is wrong.');
    refused('Old password', 'The old password is wrong.');
    await userEvent.clear(old);
    await userEvent.type(old, 'correct horse{Enter}');
    await vi.waitFor(() => expect(onChanged).toHaveBeenCalledOnce());
    const given = { password: 'battery staple', keepTokens: true };
    expect(sent).toEqual(['', 'wrong horse', 'correct horse'].map((oldPassword) => ({ ...given, oldPassword })));
  });

  it('shows any other refusal in the server’s words', async () => {
    const { onChanged } = await show({ answers: [[429, { code: 'too-many-attempts', message: 'Wait a minute.' }]] });
    await fill('battery staple');
    expect((await screen.findByRole('alert')).textContent).toContain('Wait a minute.');
    expect(onChanged).not.toHaveBeenCalled();
  });

  it('sends an account without a password to a new sign-in, as it has no old one', async () => {
    await show({ hasPassword: false, answers: [[403, NEEDED]] });
    await userEvent.type(screen.getByLabelText('New password'), 'battery staple');
    await userEvent.type(screen.getByLabelText('New password again'), 'battery staple');
    await userEvent.click(screen.getByRole('button', { name: 'Set the password' }));
    expect((await screen.findByRole('alert')).textContent).toMatch(/Sign out, sign in again/);
    expect(screen.queryByLabelText('Old password')).toBeNull();
  });
});
