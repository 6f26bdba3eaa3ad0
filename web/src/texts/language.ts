/** The language of the portal: the reader's choice, kept in the browser, and the texts of each part in it. */

import { useSyncExternalStore } from 'react';

/** A text by a number: one form for each of the language's plurals; `other` stands for those that it leaves out. */
export type Plural = { readonly other: string } & { readonly [Rule in Intl.LDMLPluralRule]?: string };

/** Texts by their names; `{word}` in a text is filled in by what shows it. */
export interface Texts {
  readonly [name: string]: string | Texts;
}

/** What a language has for the English texts of a part: the same names, and plurals of its own. */
export type Translation<Part> = {
  readonly [Name in keyof Part]: Part[Name] extends string ? string : Part[Name] extends Plural ? Plural : Translation<Part[Name]>;
};

export interface Language {
  /** Its tag in BCP 47, for plurals, numbers and the browser. */
  code: string;
  /** What its speakers call it. */
  name: string;
  /** Its texts of a part; those that it has are a `Translation` of the English ones. */
  texts: (part: string, english: Texts) => Texts;
}

export const ENGLISH: Language = { code: 'en', name: 'English', texts: (_, english) => english };

interface Offer extends Pick<Language, 'code' | 'name'> {
  load: () => Promise<Language>;
  /** Whether it is offered only where it is chosen already: it is made up, for those who translate. */
  unlisted?: boolean;
}

const OFFERS: readonly Offer[] = [
  { ...ENGLISH, load: () => Promise.resolve(ENGLISH) },
  { code: 'en-XA', name: 'Made-up', unlisted: true, load: async () => (await import('./madeup')).MADE_UP },
];

const KEY = 'corral.language';
let current = ENGLISH;
let choices = 0;
const listeners = new Set<() => void>();

/** The language that the portal speaks now. */
export const language = (): Language => current;

/** The languages to choose from. */
export const languages = (): readonly Pick<Language, 'code' | 'name'>[] => OFFERS.filter(({ code, unlisted }) => !unlisted || code === current.code);

/** Speak a language from now on; one whose file does not come, or comes after a later choice, leaves the page as it is. */
async function speak(code: string | null): Promise<void> {
  const offer = OFFERS.find((each) => each.code === code) ?? OFFERS[0]!;
  const choice = ++choices;
  const loaded = await offer.load().catch(() => current);
  if (choice !== choices) return;
  current = loaded;
  document.documentElement.lang = current.code;
  for (const each of listeners) each();
}

/** Speak the language that this browser keeps, before the first paint. */
export const startLanguage = (): Promise<void> => speak(localStorage.getItem(KEY));

/** Speak another language, and keep the choice in this browser. */
export async function chooseLanguage(code: string): Promise<void> {
  localStorage.setItem(KEY, code);
  await speak(code);
}

/** The language's tag, as a key of what is drawn anew when another language is chosen. */
export function useLanguage(): string {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current.code,
  );
}

/**
 * The texts of a part of the portal, which are read in the language of that moment.
 *
 * Read them where they are shown: a constant of a module would keep the language that was spoken when the module was loaded.
 */
export function part<const Part extends Texts>(name: string, english: Part): Translation<Part> {
  return new Proxy<Texts>(english, { get: (_, text) => Reflect.get(current.texts(name, english), text) }) as Translation<Part>;
}
