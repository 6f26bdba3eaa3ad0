/** The fields of a storage that the form edits, by type; what it does not know of a document stays as it is. */

import { storages as texts } from '../texts/english/storages';
import { textOf } from '../texts/fill';

export interface Field {
  /** The document's field. */
  name: string;
  /** The field's name in the catalogue, where it differs. */
  said?: 'folderPath' | 'exportPath';
  /** What may be written, where that is not the same in each language. */
  hinted?: 'itsName' | 'storagesName';
  hint?: string;
  required?: boolean;
}
export interface StorageType {
  type: string;
  fields: readonly Field[];
}

const SECRET: Field = { name: 'secretName', hinted: 'itsName' };
const CREDENTIALS: Field = { name: 'credentialsFile', hint: '/etc/corral/filer.cred' };
const ACCOUNT: Field = { name: 'accountName' };
const HOST: Field = { name: 'hostPath', hint: '/mnt/filer' };

export const TYPES: readonly StorageType[] = [
  { type: 'folder', fields: [{ name: 'path', said: 'folderPath', hint: '/srv/data', required: true }] },
  {
    type: 'nfs',
    fields: [
      { name: 'server', hint: 'filer.example.org', required: true },
      { name: 'path', said: 'exportPath', hint: '/export/data', required: true },
      HOST,
    ],
  },
  { type: 'samba', fields: [{ name: 'address', hint: '//server/share', required: true }, CREDENTIALS, SECRET, HOST] },
  { type: 'uri', fields: [{ name: 'uri', hint: 's3://bucket/data', required: true }] },
  { type: 'pvc', fields: [{ name: 'claim', hinted: 'storagesName' }] },
  { type: 'azureFile', fields: [{ name: 'shareName', required: true }, ACCOUNT, CREDENTIALS, SECRET, HOST] },
  { type: 'azureBlob', fields: [{ name: 'containerName', required: true }, ACCOUNT, SECRET, HOST] },
  { type: 'dshuttle', fields: [SECRET, HOST] },
  { type: 'other', fields: [HOST, { name: 'driver', hint: 'csi.example.org' }, SECRET] },
];

export const fieldLabel = ({ name, said }: Field): string => (said ? texts[said] : textOf(texts.fields, name));
export const fieldHint = ({ hint = '', hinted }: Field): string => (hinted ? texts[hinted] : hint);
const fieldsOf = (type: string) => TYPES.find((each) => each.type === type)?.fields ?? [];
export const typeLabel = (type: string): string => (type === 'other' ? texts.anyType : textOf(texts.types, type));

/** A storage as the form has it: texts by field, and what is ticked. */
export interface StorageForm {
  name: string;
  type: string;
  description: string;
  share: boolean;
  readOnly: boolean;
  /** Options of mount with blanks between them. */
  mountOptions: string;
  texts: Record<string, string>;
}

type Document = Record<string, unknown>;
const text = (value: unknown) => (typeof value === 'string' ? value : '');

export function formOf(document: Document): StorageForm {
  const type = text(document.type) || 'folder';
  return {
    name: text(document.name),
    type,
    description: text(document.description),
    share: document.share !== false,
    readOnly: document.readOnly === true,
    mountOptions: Array.isArray(document.mountOptions) ? document.mountOptions.join(' ') : '',
    texts: Object.fromEntries(fieldsOf(type).map((field) => [field.name, text(document[field.name])])),
  };
}

/** `base` with what the form says; fields of another type go when the type changes. */
export function documentOf(form: StorageForm, base: Document): Document {
  const fields = fieldsOf(form.type);
  const left = base.type === form.type ? [] : [...TYPES.flatMap((each) => each.fields.map((field) => field.name)), 'attributes'];
  const kept = Object.fromEntries(Object.entries(base).filter(([name]) => !left.includes(name)));
  return {
    ...kept,
    kind: 'Storage',
    name: form.name.trim(),
    type: form.type,
    description: form.description.trim(),
    share: form.share,
    readOnly: form.readOnly,
    mountOptions: form.mountOptions.split(/\s+/).filter(Boolean),
    ...Object.fromEntries(fields.map((field) => [field.name, (form.texts[field.name] ?? '').trim()])),
  };
}
