// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Channels, told } from './Channels';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const MAIL = {
  name: 'me',
  kind: 'mail' as const,
  address: 'ada@example.org',
  verified: false,
  events: ['failed' as const],
  waitingSeconds: 7200,
  jobs: 'train-*',
  createdAt: '2026-11-27T10:00:00.000Z',
};
const FAILED = { id: 7, at: MAIL.createdAt, channel: 'me', event: 'failed', job: '1a', subject: 'Job ada~train failed', state: 'failed', tries: 1, nextTry: null, error: 'It is gone.' };

/** Shows the channels of an account; what is posted is kept. */
async function show(channel: object) {
  const sent: [string, unknown][] = [];
  vi.stubGlobal('fetch', (url: string, { method, body }: RequestInit) => {
    const path = url.replace(/^.*\/api\/v3/, '');
    if (method === 'POST' || method === 'DELETE') sent.push([`${method} ${path}`, body ? JSON.parse(String(body)) : null]);
    const said = method === 'POST' ? { ...MAIL, address: 'https://x.org/…', signingKey: 'whsec_key' } : { items: path.includes('history') ? [FAILED] : [channel], next: null };
    return Promise.resolve(new Response(JSON.stringify(said), { status: 200 }));
  });
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Channels />
    </QueryClientProvider>,
  );
  await screen.findByText('ada@example.org');
  return sent;
}

describe('the channels of an account', { timeout: 60_000 }, () => {
  it('takes the code of a channel that is not verified', async () => {
    const sent = await show(MAIL);
    await userEvent.type(screen.getByLabelText('Code of me'), 'AAAA-BBBB{Enter}');
    expect(sent).toEqual([['POST /account/notifications/me/verify', { code: 'AAAA-BBBB' }]]);
    expect(screen.queryByLabelText('Test me')).toBeNull();
  });

  it('tests and removes a verified one, and says why a message failed', async () => {
    const sent = await show({ ...MAIL, verified: true });
    await userEvent.click(screen.getByLabelText('Test me'));
    await userEvent.click(screen.getByLabelText('Remove me'));
    expect(sent.map(([call]) => call)).toEqual(['POST /account/notifications/me/test', 'DELETE /account/notifications/me']);
    expect(screen.getByText('failed: It is gone.')).toBeTruthy();
  });

  it('hides the URL of a webhook while it is typed, and shows its key once', async () => {
    const sent = await show(MAIL);
    fireEvent.change(screen.getByLabelText('Channel'), { target: { value: 'hook' } });
    await userEvent.selectOptions(screen.getByLabelText('Kind'), 'webhook');
    const url = screen.getByLabelText('URL (a secret)');
    expect(url.getAttribute('type')).toBe('password');
    fireEvent.change(url, { target: { value: 'https://x.org/s3cret' } });
    await userEvent.click(screen.getByRole('button', { name: 'Add a channel' }));
    expect(sent).toEqual([['POST /account/notifications', { name: 'hook', kind: 'webhook', address: 'https://x.org/s3cret' }]]);
    expect((await screen.findByRole('status')).textContent).toContain('whsec_key');
  });

  it.each([
    [MAIL, 'failed, waiting over 120 min; of train-*'],
    [{ ...MAIL, events: [], waitingSeconds: 0, jobs: '*' }, 'what job files ask for'],
  ])('says what is told', (channel, words) => {
    expect(told(channel)).toBe(words);
  });
});
