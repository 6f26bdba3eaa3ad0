/** Figures over the time of a profile: one small picture for each figure of each rank. */

import type { ProfileCurve, RankCurves } from '../api/types';
import { amount, curvePath, curveWords } from '../lib/profiles';
import { profiles as texts } from '../texts/english/profiles';
import { counted, fill } from '../texts/fill';

const WIDTH = 300;
const HEIGHT = 44;
/** Ranks that are drawn. */
const MOST = 16;

export function ProfileCurves({ ranks }: { ranks: readonly RankCurves[] }) {
  return (
    <>
      {ranks.slice(0, MOST).map((rank) => (
        <section key={rank.rank} aria-label={fill(texts.figuresOf, { rank: rank.rank })}>
          <h3 className="text-sm font-medium">
            {rank.rank}
            <span className="font-normal text-muted"> {fill(texts.overS, { seconds: rank.seconds.toFixed(1) })}</span>
          </h3>
          <ul className="grid gap-x-6 gap-y-4 pt-2 sm:grid-cols-2 lg:grid-cols-3">
            {rank.curves.map((curve) => (
              <li key={curve.name} className="min-w-0">
                <Curve curve={curve} />
              </li>
            ))}
          </ul>
        </section>
      ))}
      {ranks.some((rank) => rank.curves.some((curve) => curve.name.startsWith('network '))) && (
        <p className="text-2xs text-muted">
          {texts.networkFiguresWhole}
        </p>
      )}
      {ranks.length > MOST && <p className="text-2xs text-muted">{counted(texts.moreRanksDrawn, ranks.length - MOST)}</p>}
    </>
  );
}

function Curve({ curve }: { curve: ProfileCurve }) {
  return (
    <figure>
      <figcaption className="flex justify-between gap-2 text-xs">
        <span className="truncate">{curve.name}</span>
        <span className="whitespace-nowrap text-muted">{fill(texts.most, { most: amount(curve.most, curve.unit) })}</span>
      </figcaption>
      <svg
        role="img"
        aria-label={curveWords(curve)}
        viewBox={`0 -2 ${WIDTH} ${HEIGHT + 4}`}
        preserveAspectRatio="none"
        width="100%"
        height={HEIGHT}
        className="block border-b border-line-strong"
      >
        <title>{curveWords(curve)}</title>
        <path d={curvePath(curve.points, WIDTH, HEIGHT)} fill="none" stroke="var(--accent)" strokeWidth={1.5} vectorEffect="non-scaling-stroke" />
      </svg>
    </figure>
  );
}
