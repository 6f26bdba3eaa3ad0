/** What queues are given in numbers, as fields: amounts and limits of one resource, or the cells that each owns. */

import type { Queue } from '../api/types';
import { BOUNDS, type CellRow, given, type Given, newCells } from '../lib/given';
import { wide } from '../lib/wide';
import { queues as texts } from '../texts/english/queues';
import { fill } from '../texts/fill';
import type { ShareDraft } from './useShareDraft';

interface Props {
  queues: readonly Queue[];
  draft: ShareDraft;
}

const fieldsOf = (queue: Queue, draft: ShareDraft): Given => draft.edits[queue.name]?.now ?? given(queue.doc);

export function QueueBounds({ queues, draft, resource }: Props & { resource: string }) {
  return (
    <div {...wide} className="overflow-x-auto">
      <table className="grid-table !w-auto" aria-label={fill(texts.boundsOf, { resource })}>
        <thead>
          <tr>
            <th>{texts.queue}</th>
            {BOUNDS.map((bound) => (
              <th key={bound}>{texts.bounds[bound]}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {queues.map((queue) => {
            const now = fieldsOf(queue, draft);
            return (
              <tr key={queue.name} data-given={queue.name}>
                <td className="max-w-40 truncate">{queue.name}</td>
                {BOUNDS.map((bound) => (
                  <td key={bound}>
                    <input
                      className="field !w-20"
                      aria-label={fill(texts.boundField, { queue: queue.name, bound: texts.bounds[bound].toLowerCase(), resource })}
                      maxLength={40}
                      value={now.bounds[bound][resource] ?? ''}
                      onChange={(event) => draft.edit(queue, { ...now, bounds: { ...now.bounds, [bound]: { ...now.bounds[bound], [resource]: event.target.value } } })}
                    />
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

export function QueueCells({ queues, draft }: Props) {
  return (
    <div className="space-y-4">
      {queues.map((queue) => (
        <Owner key={queue.name} queue={queue} draft={draft} />
      ))}
    </div>
  );
}

function Owner({ queue, draft }: { queue: Queue; draft: ShareDraft }) {
  const now = fieldsOf(queue, draft);
  const set = (cells: readonly CellRow[]) => draft.edit(queue, { ...now, cells });
  return (
    <section aria-label={fill(texts.cellsOfQueue, { queue: queue.name })} className="min-w-0">
      <h2 className="heading">{queue.name}</h2>
      {now.cells.map((cell, row) => (
        <Cells
          key={row}
          cell={cell}
          label={fill(texts.cellsRow, { queue: queue.name, row: row + 1 })}
          onChange={(next) => set(now.cells.map((each, at) => (at === row ? next : each)))}
          onRemove={() => set(now.cells.filter((_, at) => at !== row))}
        />
      ))}
      <div className="flex flex-wrap items-end gap-2 pt-1">
        <button type="button" className="btn !h-8" aria-label={fill(texts.addCellsTo, { queue: queue.name })} onClick={() => set([...now.cells, newCells])}>
          {texts.addCells}
        </button>
        <label className="min-w-0">
          <span className="label block">{texts.pinnedNames}</span>
          <input className="field !w-56 max-w-full" aria-label={fill(texts.pinnedOf, { queue: queue.name })} maxLength={2000} value={now.pinned} onChange={(event) => draft.edit(queue, { ...now, pinned: event.target.value })} />
        </label>
      </div>
    </section>
  );
}

interface CellsProps {
  cell: CellRow;
  label: string;
  onChange: (cell: CellRow) => void;
  onRemove: () => void;
}

function Cells({ cell, label, onChange, onRemove }: CellsProps) {
  return (
    <div role="group" aria-label={label} className="flex flex-wrap items-end gap-2 pb-2">
      <label>
        <span className="label block">{texts.cellCount}</span>
        <input className="field !w-16" inputMode="numeric" maxLength={7} value={cell.count} onChange={(event) => onChange({ ...cell, count: event.target.value })} />
      </label>
      <label>
        <span className="label block">{texts.cellsBy}</span>
        <select className="field !w-auto" value={cell.by} onChange={(event) => onChange({ ...cell, by: event.target.value as CellRow['by'] })}>
          <option value="level">{texts.byLevel}</option>
          <option value="cellType">{texts.byType}</option>
        </select>
      </label>
      <label>
        <span className="label block">{texts.cellWhat}</span>
        <input className="field !w-36" maxLength={1000} value={cell.what} onChange={(event) => onChange({ ...cell, what: event.target.value })} />
      </label>
      <label>
        <span className="label block">{texts.cellModel}</span>
        <input className="field !w-32" maxLength={128} placeholder={texts.anyModel} value={cell.model} onChange={(event) => onChange({ ...cell, model: event.target.value })} />
      </label>
      <button type="button" className="btn-bare !h-9" onClick={onRemove}>
        {texts.removeCells}
      </button>
    </div>
  );
}
