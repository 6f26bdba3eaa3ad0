/** Two lines over the time looked at: as things are (dashed), and with the changes. */

import { polyline } from '../lib/whatif';
import { whatif as texts } from '../texts/english/whatif';
import { fill, number } from '../texts/fill';

const WIDTH = 600;
const HEIGHT = 96;

interface Props {
  title: string;
  before: readonly number[];
  after: readonly number[];
  /** A bound to draw above both, such as all devices. */
  bound?: number;
  hours: number;
  changed: boolean;
}

export function BeforeAfter({ title, before, after, bound = 0, hours, changed }: Props) {
  const top = Math.max(1, bound, ...before, ...after);
  const mean = (values: readonly number[]) => number(values.reduce((sum, each) => sum + each, 0) / Math.max(1, values.length), { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  const means = fill(changed ? texts.beforeAfter : texts.onAverage, { before: mean(before), after: mean(after) });
  const words = fill(texts.pictureOf, { title, words: means });
  return (
    <figure className="min-w-0">
      <figcaption className="flex items-baseline justify-between gap-2 pb-1 text-xs">
        <span className="label">{title}</span>
        <span className="text-2xs text-muted">{means}</span>
      </figcaption>
      <svg role="img" aria-label={words} viewBox={`0 -4 ${WIDTH} ${HEIGHT + 8}`} preserveAspectRatio="none" className="block h-24 w-full border-b border-l border-line">
        <title>{words}</title>
        {bound > 0 && <line x1={0} x2={WIDTH} y1={HEIGHT - (bound / top) * HEIGHT} y2={HEIGHT - (bound / top) * HEIGHT} stroke="var(--line-strong)" vectorEffect="non-scaling-stroke" />}
        {changed && <polyline points={polyline(before, top, WIDTH, HEIGHT)} fill="none" stroke="var(--muted)" strokeWidth={1.5} strokeDasharray="4 3" vectorEffect="non-scaling-stroke" />}
        <polyline points={polyline(after, top, WIDTH, HEIGHT)} fill="none" stroke="var(--accent)" strokeWidth={2} vectorEffect="non-scaling-stroke" />
      </svg>
      <div aria-hidden className="flex justify-between pt-0.5 text-2xs text-muted">
        <span>{texts.now}</span>
        <span>{fill(texts.inHours, { hours })}</span>
      </div>
    </figure>
  );
}
