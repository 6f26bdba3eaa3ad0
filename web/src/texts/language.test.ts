// @vitest-environment happy-dom
import { afterEach, expect, it, vi } from 'vitest';
import { counted, fill, number, textOf } from './fill';
import { chooseLanguage, language, languages, part, startLanguage, type Texts } from './language';
import { accented } from './madeup';

const TEXTS = part('test', { stop: 'Stop {job}', jobs: { one: '{count} job', other: '{count} jobs' }, deep: { er: 'deeper' } });

afterEach(async () => {
  await chooseLanguage('en');
  localStorage.clear();
});

it('speaks English where nothing is chosen, or what no build has any more', async () => {
  localStorage.setItem('corral.language', 'xx-gone');
  await startLanguage();
  expect([language().code, TEXTS.stop, document.documentElement.lang]).toEqual(['en', 'Stop {job}', 'en']);
  expect(languages().map(({ code }) => code)).toEqual(['en']);
});

it('keeps a choice, shows each part in it, and offers the made-up language only while it is chosen', async () => {
  await chooseLanguage('en-XA');
  expect([fill(TEXTS.stop, { job: 'train' }), TEXTS.deep.er]).toEqual(['Šţóþ train', 'đééþéř']);
  expect([localStorage.getItem('corral.language'), document.documentElement.lang]).toEqual(['en-XA', 'en-XA']);
  expect(languages().map(({ code }) => code)).toEqual(['en', 'en-XA']);
  await chooseLanguage('en');
  expect([TEXTS.stop, languages().length]).toEqual(['Stop {job}', 1]);
});

it('speaks the later of two choices where the file of the earlier one comes last', async () => {
  vi.resetModules();
  let come = (): void => undefined;
  const held = new Promise<void>((resolve) => (come = resolve));
  vi.doMock('./madeup', async (original) => (await held, await original<object>()));
  const fresh = await import('./language');
  const earlier = fresh.chooseLanguage('en-XA');
  await fresh.chooseLanguage('en');
  come();
  await earlier;
  expect([fresh.language().code, document.documentElement.lang, localStorage.getItem('corral.language')]).toEqual(['en', 'en', 'en']);
  await fresh.chooseLanguage('en-XA');
  expect(fresh.language().code).toBe('en-XA');
  vi.doUnmock('./madeup');
});

it('fills gaps by what is given, and leaves those of which nothing is known', () => {
  expect(fill('{a} of {b}, {a}', { a: 1 })).toBe('1 of {b}, 1');
  expect(fill('{a}', { a: '{b}', b: 'not filled twice' })).toBe('{b}');
});

it('counts by the plurals of the language, and writes its numbers', () => {
  expect([0, 1, 1200].map((count) => counted(TEXTS.jobs, count))).toEqual(['0 jobs', '1 job', '1,200 jobs']);
  expect(counted({ other: '{count} of {all}' }, 1, { all: 3 })).toBe('1 of 3');
  expect(number(1200)).toBe('1,200');
});

it('shows a word of the server that has no text as it came', () => {
  expect(['er', 'toString', 'queued'].map((word) => textOf(TEXTS.deep, word))).toEqual(['deeper', 'toString', 'queued']);
});

it('accents every letter of a text and no name of a gap', () => {
  expect(accented('Go to {page}: Zoë, 3 Xs')).toBe('Ğó ţó {page}: Žóë, 3 Ẋš');
  expect(accented('abcdefghijklmnopqrstuvwxyz')).not.toMatch(/[a-z]/);
});

it('has each name of a part once, and the same gaps in all forms of a number', async () => {
  vi.resetModules();
  const names: string[] = [];
  vi.doMock('./language', () => ({ part: (name: string, english: Texts) => (names.push(name), english) }));
  const modules = import.meta.glob<Record<string, Texts>>('./english/*.ts');
  const exported = (await Promise.all(Object.values(modules).map((load) => load()))).flatMap((each) => Object.entries(each));
  expect(names.toSorted()).toEqual(exported.map(([name]) => name).toSorted());
  expect(new Set(names).size).toBe(names.length);
  const wrong = (texts: Texts): string[] =>
    Object.values(texts).flatMap((text) => {
      if (typeof text === 'string') return /\{(?!\w+\})|(?<!\{\w+)\}/.test(text) ? [text] : [];
      const forms = 'other' in text && 'one' in text ? Object.values(text).map((form) => [...String(form).matchAll(/\{\w+\}/g)].map(String).toSorted().join()) : [];
      return new Set(forms).size > 1 ? forms : wrong(text);
    });
  expect(exported.flatMap(([, texts]) => wrong(texts))).toEqual([]);
  vi.doUnmock('./language');
});
