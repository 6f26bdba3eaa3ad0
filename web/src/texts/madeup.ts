/** A language that is made up of the English texts by accents, so that a text that is in no catalogue stands out. */

import type { Language, Texts } from './language';

const PLAIN = 'abcdefghijklmnopqrstuvwxyz';
const ACCENTED = 'áƀçđéƒğĥíĵķļḿñóþɋřšţúṽŵẋýž';

/** A text with an accent on each letter; the names of its gaps stay as they are. */
export function accented(text: string): string {
  return text.replace(/\{\w+\}|[a-z]/gi, (found) => {
    const letter = ACCENTED[PLAIN.indexOf(found.toLowerCase())];
    if (found.length > 1 || !letter) return found;
    return found === found.toLowerCase() ? letter : letter.toUpperCase();
  });
}

function all(texts: Texts): Texts {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, typeof text === 'string' ? accented(text) : all(text)]));
}

const made = new Map<string, Texts>();

export const MADE_UP: Language = {
  code: 'en-XA',
  name: 'Made-up',
  texts: (part, english) => {
    const known = made.get(part) ?? all(english);
    made.set(part, known);
    return known;
  },
};
