import { createContext, useContext } from 'react';
import { callFor, get, send } from './client.ts';
import type { Scope, Session } from './types.ts';

/** Removes the code from the address, so that neither the history nor a copied link contains it. */
export function takeCode(): string | null {
  const code = new URLSearchParams(window.location.hash.slice(1)).get('code');
  if (code !== null) window.history.replaceState(null, '', window.location.pathname + window.location.search);
  return code;
}

/**
 * Opens a session with a sign-in code, or without one resumes the session of the browser's cookie.
 * @throws {ApiError} 401 when there is none
 */
export async function openSession(code: string | null): Promise<Session> {
  const session =
    code !== null
      ? await send<Session>('POST', 'session', { code })
      : (await get<{ data: Session }>('session')).data;
  callFor(session.id);
  return session;
}

export const SessionContext = createContext<Session | null>(null);

/** The current session. Only inside the shell, where there is one. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error('no session around this component');
  return session;
}

export function useScope(scope: Scope): boolean {
  return useSession().scopes.includes(scope);
}
