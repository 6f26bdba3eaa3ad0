/** A followed log as React state: text is collected and shown once a frame, however fast it comes. */

import { useEffect, useRef, useState } from 'react';
import { follow, type LogState } from '../api/logs';
import { LogBuffer } from '../lib/logbuffer';

const SHOW_MS = 80;

export interface FollowedLog {
  buffer: LogBuffer;
  /** Changes with every change of the buffer. */
  version: number;
  state: LogState;
  problem: string;
}

/**
 * Follows one task (all its attempts, or one of them), or all tasks. A log that has ended is followed anew when
 * `generation`, the job's attempt, changes: the job was restarted. One that is followed goes on by itself.
 */
export function useLog(ref: string, task: string, attempt: string, generation: number): FollowedLog {
  const buffer = useRef(new LogBuffer());
  const [version, setVersion] = useState(0);
  const [{ state, problem }, setState] = useState<{ state: LogState; problem: string }>({ state: 'opening', problem: '' });
  const [round, setRound] = useState(0);
  const ended = useRef<number | null>(null);
  const current = useRef(generation);
  useEffect(() => {
    current.current = generation;
    if (ended.current !== null && ended.current !== generation && !attempt) setRound((before) => before + 1);
  }, [generation, attempt]);
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        setVersion((before) => before + 1);
      }, SHOW_MS);
    };
    buffer.current.clear();
    ended.current = null;
    setVersion((before) => before + 1);
    void follow({ ref, task, attempt }, abort.signal, {
      onText: (text) => {
        buffer.current.append(text);
        show();
      },
      onState: (next, said = '') => {
        if (next === 'ended') ended.current = current.current;
        setState({ state: next, problem: said });
      },
      onRestart: () => {
        buffer.current.clear();
        show();
      },
    });
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [ref, task, attempt, round]);
  return { buffer: buffer.current, version, state, problem };
}
