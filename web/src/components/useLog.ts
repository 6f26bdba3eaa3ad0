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

/** Follows one task, or all; a change of `generation` (the attempt) begins anew. */
export function useLog(ref: string, task: string, generation: number): FollowedLog {
  const buffer = useRef(new LogBuffer());
  const [version, setVersion] = useState(0);
  const [{ state, problem }, setState] = useState<{ state: LogState; problem: string }>({ state: 'opening', problem: '' });
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
    setVersion((before) => before + 1);
    void follow({ ref, task }, abort.signal, {
      onText: (text) => {
        buffer.current.append(text);
        show();
      },
      onState: (next, said = '') => setState({ state: next, problem: said }),
      onRestart: () => {
        buffer.current.clear();
        show();
      },
    });
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [ref, task, generation]);
  return { buffer: buffer.current, version, state, problem };
}
