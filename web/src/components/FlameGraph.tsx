/** The flame graph of a profile: outermost frames above. Arrow keys walk, Enter widens a frame, Escape goes back. */

import { useRef, useState, type KeyboardEvent } from 'react';
import type { ProfileReport } from '../api/types';
import { drawn, flamesOf, hueOf, next, type Drawn, type Flame } from '../lib/flames';
import { profiles as texts } from '../texts/english/profiles';
import { fill, number } from '../texts/fill';

const ROW = 20;

export function FlameGraph({ report }: { report: ProfileReport }) {
  const flames = flamesOf(report.frames);
  const of = report.what === 'memory' ? texts.ofGrowth : texts.ofSamples;
  const root = flames[0];
  const [topAt, setTop] = useState(0);
  const [chosenAt, setChosen] = useState(0);
  const picture = useRef<HTMLDivElement>(null);
  const top = flames[topAt] ?? root;
  if (!root || !top) return null;
  const shown = drawn(flames, top);
  const chosen = shown.find(({ flame }) => flame.at === chosenAt)?.flame ?? top;
  const choose = (flame: Flame) => {
    setChosen(flame.at);
    picture.current?.querySelector<HTMLElement>(`[data-flame="${flame.at}"]`)?.focus({ preventScroll: true });
  };
  const widen = (flame: Flame) => {
    setTop(flame.at);
    setChosen(flame.at);
  };
  const press = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Enter' || event.key === ' ') widen(chosen);
    else if (event.key === 'Escape') widen(root);
    else if (/^(Arrow|Home)/.test(event.key)) choose(next(shown, chosen, event.key));
    else return;
    event.preventDefault();
  };
  const depth = Math.max(...shown.map(({ flame }) => flame.depth));
  return (
    <figure aria-label={texts.flameGraph} className="min-w-0">
      <figcaption className="flex flex-wrap items-baseline gap-x-3 gap-y-1 pb-1.5 text-xs text-muted">
        <span className="label">{texts.flameGraph}</span>
        <span className="grow max-sm:hidden">{texts.arrowKeysWalk}</span>
        <button type="button" className="btn !h-7" disabled={top === root} onClick={() => widen(root)}>
          {texts.showAll}
        </button>
      </figcaption>
      <div className="max-h-[26rem] overflow-y-auto border border-line bg-sunken">
        <div ref={picture} role="tree" aria-label={texts.frames} onKeyDown={press} className="relative" style={{ height: (depth + 1) * ROW }}>
          {shown.map((each) => (
            <Frame key={each.flame.at} drawn={each} all={root.samples} of={of} chosen={each.flame === chosen} onChoice={setChosen} onWiden={widen} />
          ))}
        </div>
      </div>
      <p aria-hidden className="min-h-5 truncate pt-1 text-xs">
        <span className="font-mono">{chosen.name}</span>
        <span className="text-muted"> {words(chosen, root.samples, of)}</span>
      </p>
    </figure>
  );
}

interface FrameProps {
  drawn: Drawn;
  all: number;
  of: string;
  chosen: boolean;
  onChoice: (at: number) => void;
  onWiden: (flame: Flame) => void;
}

function Frame({ drawn: { flame, left, width }, all, of, chosen, onChoice, onWiden }: FrameProps) {
  const label = `${flame.name}: ${words(flame, all, of)}`;
  return (
    <div
      role="treeitem"
      aria-level={flame.depth + 1}
      aria-label={label}
      aria-selected={chosen}
      tabIndex={chosen ? 0 : -1}
      data-flame={flame.at}
      title={label}
      onFocus={() => onChoice(flame.at)}
      onClick={() => onWiden(flame)}
      className="absolute cursor-pointer truncate border-r border-b border-sunken px-1 text-2xs leading-[19px] focus-visible:z-10 focus-visible:outline-offset-[-2px]"
      style={{
        left: `${left * 100}%`,
        width: `${width * 100}%`,
        top: flame.depth * ROW,
        height: ROW,
        background: `oklch(var(--hue-light) var(--hue-chroma) ${hueOf(flame.name)})`,
        color: 'var(--hue-text)',
      }}
    >
      {width > 0.03 ? flame.name : ''}
    </div>
  );
}

const words = (flame: Flame, all: number, of: string) => fill(of, { share: ((flame.samples / all) * 100).toFixed(1), samples: number(flame.samples) });
