/** Chooses a period: some days that end today, or two days; both are part of the page's address. */

import { PERIODS, type Period } from '../lib/usage';
import { usage as texts } from '../texts/english/usage';
import { counted } from '../texts/fill';

type Named = Partial<Record<'days' | 'from' | 'to', string>>;

interface Props {
  search: Named;
  chosen: Period;
  /** The days of an address that names none. */
  usual: (typeof PERIODS)[number];
  onChange: (change: Named) => void;
}

export function PeriodChoice({ search, chosen, usual, onChange }: Props) {
  const among = search.from ? '' : (search.days ?? usual);
  const between = (next: Period) => next.first <= next.last && onChange({ from: next.first, to: next.last, days: undefined });
  return (
    <>
      <div role="group" aria-label={texts.howFarLook} className="flex gap-1">
        {PERIODS.map((each) => (
          <button
            key={each}
            type="button"
            className="btn aria-pressed:border-accent aria-pressed:text-accent"
            aria-pressed={each === among}
            onClick={() => onChange({ days: each === usual ? undefined : each, from: undefined, to: undefined })}
          >
            {counted(texts.days, Number(each))}
          </button>
        ))}
      </div>
      <label className="space-y-1">
        <span className="label block">{texts.from}</span>
        <input type="date" className="field !w-36" required max={chosen.last} value={chosen.first} onChange={(event) => event.target.value && between({ ...chosen, first: event.target.value })} />
      </label>
      <label className="space-y-1">
        <span className="label block">{texts.to}</span>
        <input type="date" className="field !w-36" required min={chosen.first} value={chosen.last} onChange={(event) => event.target.value && between({ ...chosen, last: event.target.value })} />
      </label>
    </>
  );
}
