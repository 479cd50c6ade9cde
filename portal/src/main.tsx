import { CSPProvider } from '@base-ui/react/csp-provider';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode, useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { ApiError, onSessionChanged, onSessionEnded } from './api/client.ts';
import { queryClient } from './api/query-client.ts';
import { CookiesBlocked, openSession, SessionContext, takeCode } from './api/session.ts';
import type { Session } from './api/types.ts';
import { Loading } from './components/feedback.tsx';
import { applyBranding } from './layout/branding.ts';
import { Ended, type EndReason } from './layout/ended.tsx';
import { applyTheme, savedTheme } from './layout/theme.ts';
import { onSignedOut, router } from './router.tsx';
import './styles/main.css';

type State =
  | { kind: 'opening' }
  | { kind: 'open'; session: Session }
  | { kind: 'closed'; reason: EndReason; returnUrl: string | null };

applyTheme(savedTheme());

// Outside React, which may render twice: a code works only once.
const code = takeCode();
let opening = openSession(code);

/** Only a refusal says something about the link or the session: after any other error a retry may succeed. */
function closedBy(error: unknown): State {
  const closed = (reason: EndReason): State => ({ kind: 'closed', reason, returnUrl: null });
  if (error instanceof CookiesBlocked) return closed('cookies');
  if (!(error instanceof ApiError)) return closed('unreachable');
  if (error.isTransient) return closed('busy');
  return closed(code === null ? 'ended' : 'code');
}

function Portal() {
  const [state, setState] = useState<State>({ kind: 'opening' });
  const [attempt, setAttempt] = useState(0);

  useEffect(() => {
    opening.then(
      (session) => {
        applyBranding(session);
        setState({ kind: 'open', session });
      },
      (error: unknown) => setState(closedBy(error)),
    );
  }, [attempt]);

  useEffect(() => {
    const close = (reason: EndReason) => {
      // The cached data belongs to the session.
      queryClient.clear();
      setState((last) =>
        last.kind !== 'open'
          ? last
          : // A second sign-in would lose the session that the browser has.
            {
              kind: 'closed',
              reason,
              returnUrl: reason === 'changed' ? null : (last.session.return_url ?? null),
            },
      );
    };
    const stops = [
      onSessionEnded(() => close('ended')),
      onSessionChanged(() => close('changed')),
      onSignedOut(() => close('signed-out')),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }, []);

  if (state.kind === 'opening') return <Opening />;
  if (state.kind === 'closed') {
    const retry = () => {
      opening = openSession(code);
      setState({ kind: 'opening' });
      setAttempt(attempt + 1);
    };
    return (
      <Ended
        reason={state.reason}
        returnUrl={state.returnUrl}
        {...(['unreachable', 'busy', 'cookies'].includes(state.reason) ? { retry } : {})}
      />
    );
  }
  return (
    <SessionContext value={state.session}>
      <RouterProvider router={router} />
    </SessionContext>
  );
}

/** The frame without content, so that nothing moves when the session opens. */
function Opening() {
  return (
    <div className="app">
      <div className="rail" />
      <main>
        <div className="pagebar" />
        <div className="page">
          <Loading />
        </div>
      </main>
    </div>
  );
}

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={queryClient}>
        <Portal />
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
);
