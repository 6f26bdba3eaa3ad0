/** Asks the server to compare policies, and follows the comparison that the address names; leaving the page does not end it. */

import { useCallback, useEffect, useState } from 'react';
import { call } from '../api/client';
import { follow } from '../api/questions';
import type { ShadowReport, ShadowStatus, WhatIfProgress } from '../api/types';

interface Compared {
  progress?: WhatIfProgress;
  report?: ShadowReport;
  error?: unknown;
  cancelled?: boolean;
}

export interface Comparing extends Compared {
  isPending: boolean;
  ask: (request: unknown) => void;
  cancel: () => void;
}

/** `id` is the comparison to follow, if there is one; `show` makes it another one. */
export function useComparison(id: string, show: (id: string) => void): Comparing {
  const [state, setState] = useState<Compared>({});
  const [isBusy, setBusy] = useState(false);

  useEffect(() => {
    if (!id) {
      setState(({ cancelled, error }) => ({ cancelled, error }));
      return;
    }
    const controller = new AbortController();
    const tell = (change: Compared) => {
      if (!controller.signal.aborted) setState(change);
    };
    setState({});
    follow<ShadowReport>(`/policy-shadow/${encodeURIComponent(id)}`, { signal: controller.signal, onProgress: (progress) => tell({ progress }) }).then(
      (report) => tell({ report }),
      (error: unknown) => tell({ error }),
    );
    return () => controller.abort();
  }, [id]);

  const ask = useCallback(
    (request: unknown) => {
      setBusy(true);
      setState({});
      call<ShadowStatus>('/policy-shadow', { method: 'POST', json: request })
        .then((asked) => show(asked.id), (error: unknown) => {
          show('');
          setState({ error });
        })
        .finally(() => setBusy(false));
    },
    [show],
  );

  const cancel = useCallback(() => {
    setBusy(true);
    call(`/policy-shadow/${encodeURIComponent(id)}`, { method: 'DELETE' })
      .then(() => setState({ cancelled: true }), (error: unknown) => setState({ error }))
      .finally(() => {
        show('');
        setBusy(false);
      });
  }, [id, show]);

  return { ...state, isPending: isBusy || (id !== '' && !state.report && state.error === undefined && !state.cancelled), ask, cancel };
}
