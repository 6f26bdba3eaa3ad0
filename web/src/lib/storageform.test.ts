import { describe, expect, it } from 'vitest';
import { documentOf, formOf } from './storageform';

describe('the form of a storage', () => {
  it('keeps what it does not show', () => {
    const document = { apiVersion: 'corral.dev/v1alpha1', kind: 'Storage', name: 'cold', type: 'dshuttle', attributes: { tier: 'x' }, secretName: 's' };
    const form = formOf(document);
    expect(documentOf({ ...form, description: ' Archive ' }, document)).toMatchObject({ attributes: { tier: 'x' }, secretName: 's', description: 'Archive' });
  });

  it('takes the fields of a type away with the type', () => {
    const document = { kind: 'Storage', name: 'data', type: 'nfs', server: 'filer', path: '/export', hostPath: '/mnt/filer' };
    const changed = documentOf({ ...formOf(document), type: 'uri', texts: { uri: 's3://bucket/data', server: 'filer' } }, document);
    expect(changed).toMatchObject({ type: 'uri', uri: 's3://bucket/data' });
    expect(Object.keys(changed)).not.toContain('server');
    expect(Object.keys(changed)).not.toContain('hostPath');
  });

  it('reads and writes mount options with blanks between them', () => {
    const document = { name: 'data', type: 'nfs', server: 'f', path: '/e', mountOptions: ['nfsvers=4.1', 'ro'] };
    expect(formOf(document).mountOptions).toBe('nfsvers=4.1 ro');
    expect(documentOf({ ...formOf(document), mountOptions: ' hard  ro ' }, document).mountOptions).toEqual(['hard', 'ro']);
  });
});
