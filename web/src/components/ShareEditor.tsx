/** The tree of queues while its shares are moved: strips with dividers, the same as numbers, and what the moves would do. */

import { useQuery } from '@tanstack/react-query';
import { useBlocker } from '@tanstack/react-router';
import { useState } from 'react';
import * as ask from '../api/queries';
import type { AppliedDocument, Queue } from '../api/types';
import { nameOf } from '../lib/documents';
import { inForce, least, measure, measures, shown, siblings, type Measure, type Siblings } from '../lib/sharing';
import { CommandLine } from './Copy';
import { LeaveDraft } from './LeaveDraft';
import { Fault, Skeleton } from './Notices';
import { ShareEffect } from './ShareEffect';
import { ShareStrip, type Part } from './ShareStrip';
import { useShareDraft, type ShareDraft } from './useShareDraft';

interface Props {
  queues: Queue[];
  chosen: string;
  onChoose: (measure: string) => void;
  onClose: () => void;
}

/** What was applied last on this page, and how it was before. */
interface Made {
  names: string[];
  now: string;
  before: string;
  guards: Record<string, number>;
}

export function ShareEditor({ queues, chosen, onChoose, onClose }: Props) {
  const { data: top } = useQuery(ask.top);
  const draft = useShareDraft(queues);
  const [made, setMade] = useState<Made | null>(null);
  const [undoing, setUndoing] = useState(false);
  const moves = Object.keys(draft.moves).length > 0;
  const leave = useBlocker({ shouldBlockFn: ({ current, next }) => moves && (current.pathname !== next.pathname || !('move' in next.search)), enableBeforeUnload: () => moves, withResolver: true });
  const offered = measures(queues);
  const of = offered.find((each) => each.key === chosen) ?? measure('devices');
  const now = (queue: Queue) => draft.moves[of.key]?.[queue.name] ?? inForce(queue, of);
  const applied = (documents: AppliedDocument[], now: string, before: string) => {
    setMade({ names: documents.map(nameOf), now, before, guards: Object.fromEntries(documents.map((each) => [nameOf(each), each.revision])) });
    setUndoing(false);
    draft.clear();
  };
  return (
    <section aria-label="Move shares" className="space-y-4">
      <div className="flex flex-wrap items-center gap-3 pt-2.5">
        <label className="flex items-center gap-2 text-xs text-muted">
          Move
          <select className="field !w-auto" value={of.key} onChange={(event) => onChoose(event.target.value)}>
            {offered.map((each) => (
              <option key={each.key} value={each.key}>
                {each.word}
              </option>
            ))}
          </select>
        </label>
        <button type="button" className="btn" disabled={moves} title={moves ? 'Apply the moves, or put them back first' : undefined} onClick={onClose}>
          Done
        </button>
      </div>
      <p className="max-w-[80ch] text-xs text-muted">
        Drag a divider, or move it with the arrow keys (Page Up and Page Down: ten steps). What one queue gains, its neighbour loses. Nothing changes until it is applied.
      </p>
      {draft.error ? <Fault error={draft.error as Error} /> : null}
      {!draft.ready && !draft.error && <Skeleton rows={4} height={30} />}
      {draft.ready && siblings(queues, of, top, now).map((each) => <Level key={each.parent} level={each} of={of} now={now} draft={draft} />)}
      {draft.overtaken.length > 0 && <Overtaken draft={draft} />}
      {made && !moves && !undoing && (
        <div role="status" className="flex flex-wrap items-center gap-3 border-l-[3px] border-accent bg-accent-ground px-4 py-2 text-sm">
          <span className="grow">{`Applied: ${made.names.map((name) => `${name} is at revision ${made.guards[name]}`).join(', ')}.`}</span>
          <button type="button" className="btn" onClick={() => setUndoing(true)}>
            Undo…
          </button>
        </div>
      )}
      {made && undoing && !moves && (
        <section aria-label="Undo" className="space-y-2">
          <h2 className="heading">What undoing it would do</h2>
          <ShareEffect text={made.before} guards={made.guards} words={{ apply: 'Undo', clear: 'Leave it' }} onClear={() => setUndoing(false)} onApplied={(documents) => applied(documents, made.before, made.now)} />
        </section>
      )}
      {moves && draft.text !== undefined && draft.before !== undefined && (
        <ShareEffect text={draft.text} guards={draft.guards} words={{ apply: 'Apply', clear: 'Put all back' }} onClear={draft.clear} onApplied={(documents) => applied(documents, draft.text!, draft.before!)} />
      )}
      <CommandLine line="corral apply FILE --dry-run" className="ml-1" />
      {leave.status === 'blocked' && <LeaveDraft title="Discard the moved shares?" stay="Go on moving" onStay={leave.reset} onLeave={leave.proceed} />}
    </section>
  );
}

interface LevelProps {
  level: Siblings;
  of: Measure;
  now: (queue: Queue) => number;
  draft: ShareDraft;
}

function Level({ level: { parent, queues, total }, of, now, draft }: LevelProps) {
  const sum = queues.reduce((all, queue) => all + now(queue), 0);
  const parts: Part[] = queues.map((queue) => ({ queue: queue.name, value: now(queue), least: least(queue, of) }));
  if (total !== null) parts.push({ queue: '', value: Math.max(0, total - sum), least: 0 });
  const name = parent ? `Below ${parent}` : 'Top';
  const unit = of.unit && ` ${of.unit}`;
  const over = total !== null && sum > total;
  return (
    <section aria-label={name} className="min-w-0">
      <h2 className="heading flex-wrap">
        {name}
        <span className={`text-xs font-normal ${over ? 'text-fail' : 'text-muted'}`}>
          {total === null ? `${shown(sum)}${unit} in all` : over ? `✕ ${shown(sum)} of ${shown(total)}${unit}: more than there are` : `${shown(sum)} of ${shown(total)}${unit}`}
        </span>
      </h2>
      {parts.length > 1 && parts.some((part) => part.value > 0) && (
        <ShareStrip
          label={`Shares, ${name.toLowerCase()}`}
          measure={of}
          parts={parts}
          onMove={(values) => draft.set(of, Object.fromEntries(queues.map((queue, at) => [queue.name, values[at]!])))}
        />
      )}
      <table className="grid-table !w-auto">
        <thead>
          <tr>
            <th>Queue</th>
            <th className="num">In force</th>
            <th>{`Moved to${of.unit && `, ${of.unit}`}`}</th>
          </tr>
        </thead>
        <tbody>
          {queues.map((queue) => (
            <tr key={queue.name} data-share={queue.name}>
              <td className="max-w-40 truncate">{queue.name}</td>
              <td className="num text-muted">{shown(inForce(queue, of))}</td>
              <td>
                <Amount label={`${queue.name}, ${of.word}`} value={now(queue)} of={of} onChange={(value) => draft.set(of, { [queue.name]: value })} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const MOST = 1e6;

/** A number that is taken while it is one; the field keeps what is typed until it is left. */
function Amount({ label, value, of, onChange }: { label: string; value: number; of: Measure; onChange: (value: number) => void }) {
  const [typed, setTyped] = useState<string | null>(null);
  const take = (text: string) => {
    setTyped(text);
    const said = Number(text);
    if (text.trim() && Number.isFinite(said) && said >= 0 && said <= MOST && (of.key !== 'weight' || said > 0)) onChange(Math.round(said * 1000) / 1000);
  };
  return (
    <input
      type="number"
      className="field !w-24"
      aria-label={label}
      min={0}
      max={MOST}
      step={of.step}
      value={typed ?? String(value)}
      onChange={(event) => take(event.target.value)}
      onBlur={() => setTyped(null)}
    />
  );
}

function Overtaken({ draft }: { draft: ShareDraft }) {
  const words = draft.overtaken.map((each) => (each.revision > 0 ? `${each.actor} made revision ${each.revision} of ${nameOf(each)}` : `${nameOf(each)} was deleted`));
  return (
    <div role="status" className="flex flex-wrap items-center gap-x-3 gap-y-2 border-l-[3px] border-wait bg-wait-ground px-4 py-2 text-sm">
      <p className="grow">{`${words.join(', ')} while you were moving shares. The effect shown is against that now.`}</p>
      <button type="button" className="btn" onClick={draft.keep}>
        Keep my shares
      </button>
      <button type="button" className="btn" onClick={draft.take}>
        Take theirs
      </button>
    </div>
  );
}
