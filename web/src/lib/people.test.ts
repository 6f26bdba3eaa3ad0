import { describe, expect, it } from 'vitest';
import type { Batch, BatchLine, UserView } from '../api/types';
import { appliable, counts, found, linksText, MOST_BYTES, unsendable } from './people';

const user = (name: string, change: Partial<UserView> = {}): UserView => ({
  name,
  role: 'user',
  groups: [],
  uid: null,
  createdAt: '',
  disabled: false,
  hasPassword: false,
  email: '',
  folder: name,
  maxPriority: null,
  ...change,
});
const line = (action: BatchLine['action'], change: Partial<BatchLine> = {}): BatchLine => ({ line: 2, name: 'ada', action, changes: [], message: '', link: '', ...change });
const batch = (...lines: BatchLine[]): Batch => ({ lines, applied: false });

describe('the search for accounts', () => {
  const users = [user('ada', { email: 'ada@example.org', groups: ['vision'] }), user('bob', { disabled: true }), user('carla', { groups: ['vision'], role: 'admin' })];

  it('finds by name, address, group, role and whether they are disabled', () => {
    expect(found(users, 'EXAMPLE').map((each) => each.name)).toEqual(['ada']);
    expect(found(users, 'vision admin').map((each) => each.name)).toEqual(['carla']);
    expect(found(users, 'disabled').map((each) => each.name)).toEqual(['bob']);
    expect(found(users, ' ')).toHaveLength(3);
  });
});

describe('a list of accounts', () => {
  it('is not sent while it is empty, has no line but the first, or is too long', () => {
    expect(unsendable(' \n')).toContain('names of the columns');
    expect(unsendable('name,role\n')).toContain('a line for each account');
    expect(unsendable(`name\n${'é'.repeat(MOST_BYTES / 2)}`)).toContain('256 KiB');
    expect(unsendable('name\r\nada')).toBe('');
  });

  it('says in numbers what its lines do', () => {
    expect(counts(batch(line('create'), line('create'), line('refused')))).toBe('2 new, 1 refused');
    expect(counts(batch(line('change'), line('unchanged')))).toBe('1 changed, 1 unchanged');
  });

  it('is applied only when no line is refused and something changes', () => {
    expect(appliable(batch(line('create'), line('unchanged')))).toBe(true);
    expect(appliable(batch(line('unchanged')))).toBe(false);
    expect(appliable(batch(line('create'), line('refused')))).toBe(false);
  });

  it('gives the links of new accounts as addresses of this server', () => {
    expect(linksText(batch(line('create', { link: 'TOKEN' }), line('change')), 'https://corral.example')).toBe('ada,https://corral.example/sign-in#link=TOKEN\n');
  });
});
