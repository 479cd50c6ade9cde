import { createContext, useContext } from 'react';
import { ApiError, callFor, get, send } from './client.ts';
import type { Scope, Session } from './types.ts';

const PROBE = 'portal_probe=1';

/** Whether the browser keeps cookies of this site. Without them, signing in would only use up the link. */
export function canKeepCookies(): boolean {
  document.cookie = `${PROBE}; SameSite=Strict; Path=/`;
  const kept = document.cookie.includes(PROBE);
  document.cookie = `${PROBE}; SameSite=Strict; Path=/; Max-Age=0`;
  return kept;
}

/** Removes the code from the address, so that neither the history nor a copied link contains it. */
export function takeCode(): string | null {
  const code = new URLSearchParams(window.location.hash.slice(1)).get('code');
  if (code !== null) window.history.replaceState(null, '', window.location.pathname + window.location.search);
  return code;
}

const resume = async (): Promise<Session> => (await get<{ data: Session }>('session')).data;

/** A used link does not end the session that it once opened. */
async function exchange(code: string): Promise<Session> {
  try {
    return await send<Session>('POST', 'session', { code });
  } catch (refused) {
    if (!(refused instanceof ApiError) || refused.isTransient) throw refused;
    return resume().catch((error: unknown) => {
      throw error instanceof ApiError && error.status === 401 ? refused : error;
    });
  }
}

/**
 * Opens a session with a sign-in code, or resumes the session of the browser's cookie.
 * @throws {ApiError} 401 when there is none
 */
export async function openSession(code: string | null): Promise<Session> {
  const session = await (code === null ? resume() : exchange(code));
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
  const scopes: readonly Scope[] = useSession().scopes;
  return scopes.includes(scope);
}
