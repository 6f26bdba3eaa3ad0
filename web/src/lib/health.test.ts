import { describe, expect, it } from 'vitest';
import type { Health, HealthEntry } from '../api/types';
import { actsFor, adds, counts, happened, healthLine } from './health';

const health = (state: Health['state']): Health => ({ node: 'local/n1', state, score: 0, since: null, by: '', why: '', devices: [], job: '' });
const entry = (more: Partial<HealthEntry>): HealthEntry => ({ at: '', what: 'xid', reason: '', device: 3, weight: 6, job: '', before: '', after: '', by: '', ...more });

describe('the health of a node', () => {
  it('offers what changes its state', () => {
    expect(actsFor('healthy')).toEqual(['repairing', 'validate']);
    expect(actsFor('suspected')).toEqual(['repairing', 'validate', 'healthy']);
    expect(actsFor('validating')).toEqual(['repairing', 'healthy']);
  });
  it('is counted by state, what is closed first', () => {
    expect(counts([health('suspected'), health('healthy'), health('cordoned'), health('suspected')])).toEqual([['cordoned', 1], ['suspected', 2]]);
  });
  it('has a history in words', () => {
    expect([happened(entry({ what: 'start-failed' })), happened(entry({ what: 'moved', before: 'healthy', after: 'suspected' }))]).toEqual(['start failed', 'healthy → suspected']);
    expect([adds(entry({})), adds(entry({ weight: 0 })), adds(entry({ what: 'moved' }))]).toEqual(['+6', 'nothing', '']);
  });
  it('has a command line', () => {
    expect(healthLine('repairing', 'local/n1', 'board changed')).toBe("corral nodes repairing local/n1 --why 'board changed'");
    expect(healthLine('validate', 'local/n1', '')).toBe('corral nodes validate local/n1');
  });
});
