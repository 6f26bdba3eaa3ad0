/** Templates that people share: what is read from an item, and what OpenPAI's marketplace exports is made into. */

import { stringify } from 'yaml';
import { templates as words } from '../texts/english/templates';

/** A stored item: the server keeps it as it was sent. */
export interface TemplateItem {
  type: string;
  name: string;
  description?: string;
  /** Markdown. */
  introduction?: string;
  contributor?: string;
  categories?: string[];
  tags?: string[];
  isPublic?: boolean;
  groupList?: string[];
  /** Pictures as data URIs, by the address that the text has for each. */
  pictures?: Record<string, string>;
  /** A job file. */
  file?: string;
  [more: string]: unknown;
}

export const KINDS = ['job', 'dockerimage', 'script', 'data', 'output'] as const;
const FIELDS = new Set(['type', 'name', 'description', 'introduction', 'contributor', 'categories', 'tags', 'isPublic', 'groupList', 'pictures', 'file', 'version']);

/** The job file of an item; "" where it is none of a job. A template of OpenPAI's first marketplace is the file itself. */
export function fileOf(item: TemplateItem): string {
  for (const text of [item.file, item.protocol, item.config, item.jobConfig]) {
    if (typeof text === 'string' && text.trim()) return text;
    if (text && typeof text === 'object') return stringify(text, { lineWidth: 0 });
  }
  if (item.type !== 'job' || !('taskRoles' in item || 'roles' in item)) return '';
  const { type, name, version: _, ...rest } = item;
  return stringify({ ...rest, type, name }, { lineWidth: 0 });
}

/** What an item says beside the fields that the page shows by themselves. */
export function restOf(item: TemplateItem): string {
  const rest = Object.fromEntries(Object.entries(item).filter(([key, value]) => value !== undefined && !FIELDS.has(key)));
  return Object.keys(rest).length > 0 ? stringify(rest, { lineWidth: 0 }) : '';
}

/** Who sees an item. */
export function audience(item: { isPublic?: boolean; groupList?: readonly string[] }): string {
  if (item.isPublic !== false) return words.visibleToAll;
  return item.groupList?.length ? item.groupList.join(', ') : words.onlyYou;
}

type Json = Record<string, unknown>;
const text = (value: unknown) => (typeof value === 'string' ? value : '');
const list = (value: unknown) => (Array.isArray(value) ? value.map((each) => text(each) || text((each as Json | null)?.name)).filter(Boolean) : []);

/** The items of a file that OpenPAI's marketplace gave: a list, a page of one, or a single item. */
export function itemsIn(source: string): Json[] {
  const read: unknown = JSON.parse(source);
  const found = Array.isArray(read) ? read : ((read as Json | null)?.items ?? (read as Json | null)?.rows ?? [read]);
  if (!Array.isArray(found) || found.length === 0 || !found.every((each) => each && typeof each === 'object' && text(each.name)))
    throw new Error(words.fileHoldsItems);
  return found as Json[];
}

/** A stored item without texts and lists of another shape: the server keeps what it is sent. */
export function shaped(item: TemplateItem): TemplateItem {
  const found = item as Json;
  const texts = (value: unknown) => (Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string') : []);
  return { ...item, description: text(found.description), introduction: text(found.introduction), contributor: text(found.contributor), categories: texts(found.categories), tags: texts(found.tags) };
}

/** An item of OpenPAI's marketplace as a template; its text stays as it is. `mine`: the groups that it may be shared with. */
export function imported(item: Json, pictures: Record<string, string>, mine: readonly string[] | null): TemplateItem {
  const kind = text(item.type);
  if ((KINDS as readonly string[]).includes(kind) && !('status' in item) && !('source' in item)) return withPictures(item as TemplateItem, pictures);
  const { id, type: _, author, summary, description, introduction, category, groupList, isPublic, ...kept } = item;
  const groups = list(groupList).filter((each) => mine === null || mine.includes(each));
  const made: TemplateItem = {
    ...kept,
    type: kind === 'data' || kind === 'output' ? kind : 'job',
    name: text(item.name).replaceAll('/', '-').trim(),
    description: text(summary) || text(introduction),
    introduction: text(description),
    contributor: text(author),
    categories: list(item.categories ?? category),
    tags: list(item.tags),
    isPublic: isPublic !== false,
    groupList: groups,
    marketplaceId: id,
  };
  return withPictures(made, pictures);
}

const ADDRESSES = /!\[[^\]\n]*\]\(\s*<?([^\s)>]+)[^)\n]*\)|<img\b[^>]{0,500}?\bsrc\s*=\s*["']?([^\s"'>]+)/gi;
const EMBEDDED = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/;

/** The addresses of the pictures in a Markdown text, each once. */
export function pictureAddresses(markdown: string): string[] {
  return [...new Set([...markdown.matchAll(ADDRESSES)].map((found) => found[1] ?? found[2] ?? ''))].filter(Boolean);
}

/** The name at the end of an address, by which a chosen file stands for it. */
export function baseName(address: string): string {
  const name = address.replace(/[?#].*$/, '').split('/').pop() ?? '';
  try {
    return decodeURIComponent(name).toLowerCase();
  } catch {
    return name.toLowerCase();
  }
}

/** `pictures` has data URIs by file name; those that the text names go along, under the address that it has for them. */
function withPictures(item: TemplateItem, pictures: Record<string, string>): TemplateItem {
  const markdown = item.introduction ?? '';
  const found = { ...item.pictures };
  for (const address of pictureAddresses(markdown)) {
    const picture = pictures[baseName(address)];
    if (picture && !EMBEDDED.test(address)) found[address] = picture;
  }
  return Object.keys(found).length > 0 ? { ...item, pictures: found } : item;
}

/** The pictures that a text names and that are not there. */
export function missingPictures(item: TemplateItem): string[] {
  return pictureAddresses(item.introduction ?? '').filter((address) => !EMBEDDED.test(address) && !item.pictures?.[address]);
}

/** The picture of an address as a data URI; "" where there is none that may be shown. */
export function pictureAt(address: string, pictures: Record<string, string> = {}): string {
  const uri = Object.hasOwn(pictures, address) ? pictures[address]! : address;
  return EMBEDDED.test(uri) ? uri : '';
}
