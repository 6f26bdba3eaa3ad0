/** Texts with what they are about: values, elements, numbers with their plurals. */

import { Fragment, type ReactNode } from 'react';
import { language, type Plural } from './language';

const GAPS = /\{(\w+)\}/;

/** A text whose gaps are filled by values. */
export function fill(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replace(new RegExp(GAPS, 'g'), (gap, name: string) => String(values[name] ?? gap));
}

/** A text whose gaps are filled by elements, such as links. */
export function filled(text: string, values: Readonly<Record<string, ReactNode>>): ReactNode {
  return text.split(GAPS).map((piece, at) => <Fragment key={at}>{at % 2 ? values[piece] : piece}</Fragment>);
}

/** A number as the language writes it. */
export const number = (value: number, form?: Intl.NumberFormatOptions): string => value.toLocaleString(language().code, form);

/** The form of a text for a number, which fills its gap `{count}`. */
export function counted(text: Plural, count: number, values: Readonly<Record<string, string | number>> = {}): string {
  const rule = new Intl.PluralRules(language().code).select(count);
  return fill(text[rule] ?? text.other, { ...values, count: number(count) });
}

/** The text of a word that the server sends; of a word that it does not have, the word itself. */
export function textOf(texts: Readonly<Record<string, string>>, word: string): string {
  return Object.hasOwn(texts, word) ? texts[word]! : word;
}
