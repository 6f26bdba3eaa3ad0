/** The language of the portal's texts, chosen for this browser. */

import { useId } from 'react';
import { account as texts } from '../texts/english/account';
import { chooseLanguage, language, languages } from '../texts/language';

const FIELD = 'language';

/** The page is drawn anew in the other language, so that the focus must return to the field that was used. */
async function choose(code: string): Promise<void> {
  await chooseLanguage(code);
  requestAnimationFrame(() => document.getElementById(FIELD)?.focus());
}

export function LanguageChoice() {
  const note = useId();
  return (
    <>
      <h2 className="heading mt-7">
        <label htmlFor={FIELD}>{texts.language}</label>
      </h2>
      <select
        id={FIELD}
        className="field mt-2 !w-56"
        aria-describedby={note}
        value={language().code}
        onChange={(event) => void choose(event.target.value)}
      >
        {languages().map(({ code, name }) => (
          <option key={code} value={code} lang={code}>
            {name}
          </option>
        ))}
      </select>
      <p id={note} className="max-w-[65ch] pt-2 text-sm text-muted">
        {texts.languageNote}
      </p>
    </>
  );
}
