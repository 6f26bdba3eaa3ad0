/** Asks what-if questions, one at a time; a question is cancelled when its page is left. */

import { useCallback, useEffect, useRef, useState } from 'react';
import { askLater } from '../api/questions';
import type { WhatIfAnswer, WhatIfProgress } from '../api/types';
import { asked, type Question } from '../lib/whatif';

interface Asked {
  question?: Question;
  progress?: WhatIfProgress;
  answer?: WhatIfAnswer;
  error?: unknown;
  cancelled?: boolean;
}

export interface Asking extends Asked {
  isPending: boolean;
  ask: (question: Question) => void;
  cancel: () => void;
}

export function useQuestion(): Asking {
  const [state, setState] = useState<Asked>({});
  const [isPending, setPending] = useState(false);
  const running = useRef<AbortController>(null);

  const ask = useCallback((question: Question) => {
    const controller = new AbortController();
    running.current = controller;
    setPending(true);
    setState({ question });
    const tell = (change: Asked) => {
      if (!controller.signal.aborted) setState({ question, ...change });
    };
    askLater(asked(question), { signal: controller.signal, onProgress: (progress) => tell({ progress }) })
      .then((answer) => tell({ answer }), (error: unknown) => tell({ error }))
      .finally(() => {
        if (running.current !== controller) return;
        running.current = null;
        setPending(false);
      });
  }, []);

  const cancel = useCallback(() => {
    running.current?.abort();
    running.current = null;
    setPending(false);
    setState(({ question }) => ({ question, cancelled: true }));
  }, []);

  useEffect(() => {
    const leave = () => running.current?.abort();
    addEventListener('pagehide', leave);
    return () => {
      removeEventListener('pagehide', leave);
      leave();
    };
  }, []);

  return { ...state, isPending, ask, cancel };
}
