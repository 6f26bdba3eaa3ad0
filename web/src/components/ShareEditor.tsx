/** The tree of queues while its shares are moved: strips with dividers, the same as numbers, and what the moves would do. */

import { useQuery } from '@tanstack/react-query';
import { useBlocker } from '@tanstack/react-router';
import { useState } from 'react';
import * as ask from '../api/queries';
import type { AppliedDocument, Queue } from '../api/types';
import { nameOf } from '../lib/documents';
import { boundResources } from '../lib/given';
import { inForce, least, type Measure, measure, measures, shown, siblings, type Siblings, unitOf, wordOf } from '../lib/sharing';
import { queues as texts } from '../texts/english/queues';
import { fill } from '../texts/fill';
import { CommandLine } from './Copy';
import { LeaveDraft } from './LeaveDraft';
import { Fault, Skeleton } from './Notices';
import { QueueBounds, QueueCells } from './QueueGiven';
import { ShareEffect } from './ShareEffect';
import { ShareStrip, type Part } from './ShareStrip';
import { useShareDraft, type ShareDraft } from './useShareDraft';

/** The choice of amounts and limits of a resource, and of cells, beside the measures. */
const BOUNDS_OF = 'bounds:';
const CELLS = 'cells';

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
  const moves = draft.changed;
  const leave = useBlocker({ shouldBlockFn: ({ current, next }) => moves && (current.pathname !== next.pathname || !('move' in next.search)), enableBeforeUnload: () => moves, withResolver: true });
  const offered = measures(queues);
  const bounds = boundResources(queues).find((resource) => chosen === BOUNDS_OF + resource);
  const cells = chosen === CELLS;
  const of = offered.find((each) => each.key === chosen) ?? measure('devices');
  const now = (queue: Queue) => draft.moves[of.key]?.[queue.name] ?? inForce(queue, of);
  const applied = (documents: AppliedDocument[], now: string, before: string) => {
    setMade({ names: documents.map(nameOf), now, before, guards: Object.fromEntries(documents.map((each) => [nameOf(each), each.revision])) });
    setUndoing(false);
    draft.clear();
  };
  return (
    <section aria-label={texts.moveShares} className="space-y-4">
      <div className="flex flex-wrap items-center gap-3 pt-2.5">
        <label className="flex items-center gap-2 text-xs text-muted">
          {texts.move}
          <select className="field !w-auto" value={bounds || cells ? chosen : of.key} onChange={(event) => onChoose(event.target.value)}>
            {offered.map((each) => (
              <option key={each.key} value={each.key}>
                {wordOf(each)}
              </option>
            ))}
            {boundResources(queues).map((resource) => (
              <option key={resource} value={BOUNDS_OF + resource}>
                {fill(texts.boundsOf, { resource })}
              </option>
            ))}
            <option value={CELLS}>{texts.cellsChoice}</option>
          </select>
        </label>
        <button type="button" className="btn" disabled={moves} title={moves ? texts.applyMovesPut : undefined} onClick={onClose}>
          {texts.done}
        </button>
      </div>
      <p className="max-w-[80ch] text-xs text-muted">
        {bounds ? texts.typeAmounts : cells ? texts.typeCells : texts.dragDividerMove}
      </p>
      {draft.error ? <Fault error={draft.error as Error} /> : null}
      {!draft.ready && !draft.error && <Skeleton rows={4} height={30} />}
      {draft.ready && bounds && <QueueBounds queues={queues} draft={draft} resource={bounds} />}
      {draft.ready && cells && <QueueCells queues={queues} draft={draft} />}
      {draft.ready && !bounds && !cells && siblings(queues, of, top, now).map((each) => <Level key={each.parent} level={each} of={of} now={now} draft={draft} />)}
      {draft.overtaken.length > 0 && <Overtaken draft={draft} />}
      {made && !moves && !undoing && (
        <div role="status" className="flex flex-wrap items-center gap-3 border-l-[3px] border-accent bg-accent-ground px-4 py-2 text-sm">
          <span className="grow">{fill(texts.applied, { value: made.names.map((name) => fill(texts.revisionOf, { name, revision: String(made.guards[name]) })).join(', ') })}</span>
          <button type="button" className="btn" onClick={() => setUndoing(true)}>
            {texts.undo}
          </button>
        </div>
      )}
      {made && undoing && !moves && (
        <section aria-label={texts.undoRegion} className="space-y-2">
          <h2 className="heading">{texts.whatUndoingWould}</h2>
          <ShareEffect text={made.before} guards={made.guards} words={texts.undoWords} onClear={() => setUndoing(false)} onApplied={(documents) => applied(documents, made.before, made.now)} />
        </section>
      )}
      {moves && draft.text !== undefined && draft.before !== undefined && (
        <ShareEffect text={draft.text} guards={draft.guards} words={texts.applyWords} onClear={draft.clear} onApplied={(documents) => applied(documents, draft.text!, draft.before!)} />
      )}
      <CommandLine line="corral apply FILE --dry-run" className="ml-1" />
      {leave.status === 'blocked' && <LeaveDraft title={texts.discardMovedShares} stay={texts.goOn} onStay={leave.reset} onLeave={leave.proceed} />}
    </section>
  );
}

interface LevelProps {
  level: Siblings;
  of: Measure;
  now: (queue: Queue) => number;
  draft: ShareDraft;
}

/** What is said of a sum: beside the total where there is one, and that it is over it. */
function sumText(total: number | null, over: boolean, unit: string): string {
  if (total === null) return unit ? texts.sumUnit : texts.sumOf;
  if (over) return unit ? texts.sumMoreUnit : texts.sumMore;
  return unit ? texts.sumTotalUnit : texts.sumTotal;
}

function Level({ level: { parent, queues, total }, of, now, draft }: LevelProps) {
  const sum = queues.reduce((all, queue) => all + now(queue), 0);
  const parts: Part[] = queues.map((queue) => ({ queue: queue.name, value: now(queue), least: least(queue, of) }));
  if (total !== null) parts.push({ queue: '', value: Math.max(0, total - sum), least: 0 });
  const name = parent ? fill(texts.below, { parent }) : texts.top;
  const unit = unitOf(of);
  const over = total !== null && sum > total;
  return (
    <section aria-label={name} className="min-w-0">
      <h2 className="heading flex-wrap">
        {name}
        <span className={`text-xs font-normal ${over ? 'text-fail' : 'text-muted'}`}>
          {fill(sumText(total, over, unit), { sum: shown(sum), total: shown(total ?? 0), unit })}
        </span>
      </h2>
      {parts.length > 1 && parts.some((part) => part.value > 0) && (
        <ShareStrip
          label={fill(texts.shares, { name: name.toLowerCase() })}
          measure={of}
          parts={parts}
          onMove={(values) => draft.set(of, Object.fromEntries(queues.map((queue, at) => [queue.name, values[at]!])))}
        />
      )}
      <table className="grid-table !w-auto">
        <thead>
          <tr>
            <th>{texts.queue}</th>
            <th className="num">{texts.inForce}</th>
            <th>{unit ? fill(texts.movedTo, { unit }) : texts.movedToNone}</th>
          </tr>
        </thead>
        <tbody>
          {queues.map((queue) => (
            <tr key={queue.name} data-share={queue.name}>
              <td className="max-w-40 truncate">{queue.name}</td>
              <td className="num text-muted">{shown(inForce(queue, of))}</td>
              <td>
                <Amount label={fill(texts.amountOf, { queue: queue.name, measure: wordOf(of) })} value={now(queue)} of={of} onChange={(value) => draft.set(of, { [queue.name]: value })} />
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
  const words = draft.overtaken.map((each) => fill(each.revision > 0 ? texts.overtaken : texts.deleted, { actor: each.actor, revision: each.revision, name: nameOf(each) }));
  return (
    <div role="status" className="flex flex-wrap items-center gap-x-3 gap-y-2 border-l-[3px] border-wait bg-wait-ground px-4 py-2 text-sm">
      <p className="grow">{fill(texts.whileYouWere, { words: words.join(', ') })}</p>
      <button type="button" className="btn" onClick={draft.keep}>
        {texts.keepMyShares}
      </button>
      <button type="button" className="btn" onClick={draft.take}>
        {texts.takeTheirs}
      </button>
    </div>
  );
}
