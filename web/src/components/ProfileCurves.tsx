/** Figures over the time of a profile: one small picture for each figure of each rank. */

import type { ProfileCurve, RankCurves } from '../api/types';
import { amount, curvePath, curveWords } from '../lib/profiles';

const WIDTH = 300;
const HEIGHT = 44;
/** Ranks that are drawn. */
const MOST = 16;

export function ProfileCurves({ ranks }: { ranks: readonly RankCurves[] }) {
  return (
    <>
      {ranks.slice(0, MOST).map((rank) => (
        <section key={rank.rank} aria-label={`Figures of ${rank.rank}`}>
          <h3 className="text-sm font-medium">
            {rank.rank}
            <span className="font-normal text-muted"> · over {rank.seconds.toFixed(1)} s</span>
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
          The network figures are the whole node's where the task shares its network, as on the local engine, and else its pod's.
        </p>
      )}
      {ranks.length > MOST && <p className="text-2xs text-muted">{ranks.length - MOST} more ranks are not drawn.</p>}
    </>
  );
}

function Curve({ curve }: { curve: ProfileCurve }) {
  return (
    <figure>
      <figcaption className="flex justify-between gap-2 text-xs">
        <span className="truncate">{curve.name}</span>
        <span className="whitespace-nowrap text-muted">most {amount(curve.most, curve.unit)}</span>
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
