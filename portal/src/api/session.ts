import { createContext, useContext } from 'react';
import { callFor, get, send } from './client.ts';
import type { Scope, Session } from './types.ts';

/** Removes the code from the address, so that neither the history nor a copied link contains it. */
export function takeCode(): string | null {
  const code = new URLSearchParams(window.location.hash.slice(1)).get('code');
  if (code !== null) window.history.replaceState(null, '', window.location.pathname + window.location.search);
  return code;
}

/** The browser keeps no cookies of this page, so no session can begin. */
export class CookiesBlocked extends Error {}

/** Sets and removes a cookie with the attributes of the session's. */
function keepsCookies(): boolean {
  const site = window.top === window ? 'SameSite=Strict' : 'SameSite=None; Partitioned';
  const terms = `Path=/; ${site}${window.location.protocol === 'https:' ? '; Secure' : ''}`;
  try {
    document.cookie = `portal-probe=1; ${terms}; Max-Age=10`;
    const isKept = document.cookie.includes('portal-probe=1');
    document.cookie = `portal-probe=; ${terms}; Max-Age=0`;
    return isKept;
  } catch {
    // A sandboxed frame may not even read its cookies.
    return false;
  }
}

/**
 * Opens a session with a sign-in code, or without one resumes the session of the browser's cookie.
 * @throws {ApiError} 401 when there is none
 * @throws {CookiesBlocked} before the code is sent, so that the link still works once cookies are allowed
 */
export async function openSession(code: string | null): Promise<Session> {
  if (code !== null && !keepsCookies()) throw new CookiesBlocked();
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
