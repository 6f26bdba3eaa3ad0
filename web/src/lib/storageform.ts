/** The fields of a storage that the form edits, by type; what it does not know of a document stays as it is. */

export interface Field {
  /** The document's field. */
  name: string;
  label: string;
  hint: string;
  required?: boolean;
}
export interface StorageType {
  type: string;
  label: string;
  fields: readonly Field[];
}

const SECRET: Field = { name: 'secretName', label: 'Secret on Kubernetes', hint: 'its name' };
const CREDENTIALS: Field = { name: 'credentialsFile', label: 'Credentials file of the machines', hint: '/etc/corral/filer.cred' };
const ACCOUNT: Field = { name: 'accountName', label: 'Storage account', hint: '' };
const HOST: Field = { name: 'hostPath', label: 'Mounted already at', hint: '/mnt/filer' };

export const TYPES: readonly StorageType[] = [
  { type: 'folder', label: 'Folder of each machine', fields: [{ name: 'path', label: 'Folder', hint: '/srv/data', required: true }] },
  {
    type: 'nfs',
    label: 'NFS',
    fields: [
      { name: 'server', label: 'Server', hint: 'filer.example.org', required: true },
      { name: 'path', label: 'Export', hint: '/export/data', required: true },
      HOST,
    ],
  },
  { type: 'samba', label: 'Samba', fields: [{ name: 'address', label: 'Address', hint: '//server/share', required: true }, CREDENTIALS, SECRET, HOST] },
  { type: 'uri', label: 'Object store or HDFS', fields: [{ name: 'uri', label: 'URI', hint: 's3://bucket/data', required: true }] },
  { type: 'pvc', label: 'Claim of Kubernetes', fields: [{ name: 'claim', label: 'Claim', hint: "the storage's own name" }] },
  {
    type: 'azureFile',
    label: 'Azure file share',
    fields: [{ name: 'shareName', label: 'Share', hint: '', required: true }, ACCOUNT, CREDENTIALS, SECRET, HOST],
  },
  { type: 'azureBlob', label: 'Azure blob container', fields: [{ name: 'containerName', label: 'Container', hint: '', required: true }, ACCOUNT, SECRET, HOST] },
  { type: 'dshuttle', label: 'Dshuttle', fields: [SECRET, HOST] },
  { type: 'other', label: 'Anything else', fields: [HOST, { name: 'driver', label: 'CSI driver', hint: 'csi.example.org' }, SECRET] },
];

const fieldsOf = (type: string) => TYPES.find((each) => each.type === type)?.fields ?? [];
export const typeLabel = (type: string) => TYPES.find((each) => each.type === type)?.label ?? type;

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
