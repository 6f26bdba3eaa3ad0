/** What is shown over a page whose session ended: its reader signs in again, and what was typed below stays as it is. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { call, session, signedInAgain } from '../api/client';
import * as ask from '../api/queries';
import type { Me } from '../api/types';
import { sessionEnded as texts } from '../texts/english/signin';
import { fill, filled } from '../texts/fill';
import { FormDialog } from './FormDialog';

/** Whether the session of this page ended; while the page is shown it is told instead of the router. */
function useEnded(): [boolean, () => void] {
  const [ended, setEnded] = useState(false);
  useEffect(() => {
    const before = session.onLost;
    session.onLost = () => setEnded(true);
    return () => {
      session.onLost = before;
    };
  }, []);
  return [ended, () => setEnded(false)];
}

export function SessionEnded() {
  const [ended, goOn] = useEnded();
  const user = useQuery(ask.me).data?.user ?? '';
  return ended ? <SignInAgain user={user} onDone={goOn} /> : null;
}

function SignInAgain({ user: asked, onDone }: { user: string; onDone: () => void }) {
  const client = useQueryClient();
  const [user] = useState(asked); // who it was, also when a question in between is answered as another person already
  const [password, setPassword] = useState('');
  const signIn = useMutation({
    mutationFn: async () => {
      if (password) await call('/login', { method: 'POST', json: { user, password } });
      return call<Me>('/me');
    },
    onSuccess: async (me) => {
      if (me.user !== user) return location.assign('/'); // the page is another person's
      onDone();
      signedInAgain();
      await client.invalidateQueries();
    },
  });
  return (
    <FormDialog title={texts.title} word={texts.goOn} pending={signIn.isPending} error={signIn.error} onSubmit={() => signIn.mutate()} onClose={onDone}>
      <p className="max-w-[60ch] text-sm">{fill(texts.again, { user })}</p>
      <label className="block space-y-1 pt-4">
        <span className="label">{texts.password}</span>
        <input data-first type="password" autoComplete="current-password" className="field" value={password} onChange={(event) => setPassword(event.target.value)} />
      </label>
      <p className="pt-3 text-sm text-muted">
        {filled(texts.otherwise, {
          tab: (
            <a href="/sign-in" target="_blank" rel="noreferrer" className="link">
              {texts.tab}
            </a>
          ),
        })}
      </p>
    </FormDialog>
  );
}
