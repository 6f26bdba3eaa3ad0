/** Templates that people share (`corral/compat/openpai/routes/portal_templates.py`). */

import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { fileOf, shaped, type TemplateItem } from '../lib/templates';
import { templates as texts } from '../texts/english/templates';
import { fill } from '../texts/fill';
import { address, call, part } from './client';
import type { Copy } from './copy';
import type * as schema from './schema';

export type TemplateLine = schema.TemplateView;
export type TemplateDetail = Omit<schema.TemplateDetail, 'item'> & { item: TemplateItem };

export interface TemplateFilter {
  q?: string;
  kind?: string;
  whose?: string;
  page?: string;
}

export const templates = (filter: TemplateFilter) =>
  queryOptions({
    queryKey: ['templates', filter],
    queryFn: ({ signal }) => call<schema.TemplatePage>('/templates', { query: { ...filter }, signal }),
    placeholderData: keepPreviousData,
  });

const path = (kind: string, name: string) => `/templates/${part(kind)}/${part(name)}`;

export const template = (kind: string, name: string, version = '') =>
  queryOptions({
    queryKey: ['templates', kind, name, version],
    queryFn: async ({ signal }) => {
      const found = await call<TemplateDetail>(path(kind, name), { query: { version }, signal });
      return { ...found, item: shaped(found.item) };
    },
  });

/** The address of a picture; another version has another one, so that a browser may keep it. */
export const pictureAddress = (of: TemplateLine) => address(`${path(of.type, of.name)}/picture`, { version: of.version });

export const share = (item: TemplateItem) => call<schema.SharedTemplate>('/templates', { method: 'POST', json: item });
export const remove = (kind: string, name: string) => call(path(kind, name), { method: 'DELETE' });

/** What a template begins a job with; `ref` is `TYPE/NAME`. */
export async function templateCopy(ref: string): Promise<Copy> {
  const [kind = '', ...name] = ref.split('/');
  const { item } = await call<TemplateDetail>(path(kind, name.join('/')));
  const text = fileOf(item);
  if (!text) throw new Error(fill(texts.templateHoldsJob, { name: item.name }));
  return { text, given: {} };
}
