/** A draft of shares that were moved, the documents that it changes, and the revisions that it began with. */

import { useQueries, useQuery, useQueryClient } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import * as ask from '../api/queries';
import { sourceOf, sources, type Source } from '../api/sharing';
import type { Queue } from '../api/types';
import { nameOf } from '../lib/documents';
import { type Edits, type Given, withEdit } from '../lib/given';
import { documentWith, movedQueues, withMoves, withoutQueues, type Measure, type Moves } from '../lib/sharing';

interface State {
  moves: Moves;
  edits: Edits;
  /** The documents at the revisions that they had when their first queue was moved, by KIND/NAME. */
  bases: Readonly<Record<string, Source>>;
}

const NOTHING: State = { moves: {}, edits: {}, bases: {} };

export interface ShareDraft {
  moves: Moves;
  edits: Edits;
  changed: boolean;
  set: (of: Measure, values: Readonly<Record<string, number>>) => void;
  edit: (queue: Queue, now: Given) => void;
  clear: () => void;
  /** Whether it is known which document says what a queue is owed. */
  ready: boolean;
  error: unknown;
  /** The changed documents as one file, and as they were; undefined until they are read. */
  text: string | undefined;
  before: string | undefined;
  /** The revision that each document must be at. */
  guards: Record<string, number>;
  /** The documents of which somebody else made another revision since. */
  overtaken: Source[];
  /** Keep the moves, on top of the revisions in force now. */
  keep: () => void;
  /** Drop the moves of those documents. */
  take: () => void;
}

export function useShareDraft(queues: readonly Queue[]): ShareDraft {
  const client = useQueryClient();
  const { data: known, error } = useQuery(sources(client));
  const [{ moves, edits, bases }, setState] = useState<State>(NOTHING);
  const changed = Object.values(bases);
  const read = useQueries({ queries: changed.map((each) => ({ ...ask.document(each.kind, each.name, each.revision), enabled: each.revision > 0 })) });
  const texts = changed.map((each, at) => (each.revision > 0 ? read[at]?.data?.text : `kind: Queue\nname: ${each.name}\n`));
  const loaded = known !== undefined && changed.length > 0 && texts.every((text) => text !== undefined);
  const joined = loaded ? texts.join('---\n') : undefined;
  const text = useMemo(() => {
    if (!known || joined === undefined) return undefined;
    return Object.values(bases)
      .map((each, at) => documentWith(texts[at]!, moves, placeIn(each, (queue) => sourceOf(known, queue)), edits))
      .join('---\n');
  }, [known, joined, moves, edits, bases]); // `joined` changes with `texts`

  const update = (next: Moves, edited: Edits, kept: State['bases']) => {
    if (!known) return;
    const needed = queuesIn(next, edited).map((queue) => sourceOf(known, queue));
    setState({ moves: next, edits: edited, bases: Object.fromEntries(needed.map((each) => [nameOf(each), kept[nameOf(each)] ?? each])) });
  };
  const now = (each: Source): Source => known?.documents[nameOf(each)] ?? { ...each, revision: 0, actor: '' };
  const elsewhere = known ? queuesIn(moves, edits).map((queue) => sourceOf(known, queue)).filter((each) => !bases[nameOf(each)]) : [];
  const overtaken = known ? [...changed.filter((each) => now(each).revision !== each.revision).map(now), ...elsewhere] : [];
  return {
    moves,
    edits,
    changed: queuesIn(moves, edits).length > 0,
    set: (of, values) => update(withMoves(moves, of, values, queues), edits, bases),
    edit: (queue, now) => update(moves, withEdit(edits, queue, now), bases),
    clear: () => setState(NOTHING),
    ready: known !== undefined,
    error: error ?? read.find((each) => each.error)?.error,
    text,
    before: joined,
    guards: Object.fromEntries(Object.entries(bases).map(([name, { revision }]) => [name, revision])),
    overtaken,
    keep: () => update(moves, edits, {}),
    take: () => {
      const names = overtaken.map(nameOf);
      const theirs = queuesIn(moves, edits).filter((queue) => known && names.includes(nameOf(sourceOf(known, queue))));
      update(withoutQueues(moves, theirs), Object.fromEntries(Object.entries(edits).filter(([queue]) => !theirs.includes(queue))), bases);
    },
  };
}

/** The queues that are moved, or whose fields are changed. */
const queuesIn = (moves: Moves, edits: Edits): string[] => [...new Set([...movedQueues(moves), ...Object.keys(edits)])].sort();

/** Where a queue stands in a document; null where another one has it. */
function placeIn(source: Source, of: (queue: string) => Source): (queue: string) => readonly string[] | null {
  return (queue) => {
    if (nameOf(of(queue)) !== nameOf(source)) return null;
    return source.kind === 'Queue' ? [] : ['queues', queue];
  };
}
