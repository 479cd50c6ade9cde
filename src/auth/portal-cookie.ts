/**
 * `__Host-` binds the cookie to its host and https, so that no other host can set it. Browsers accept that name only
 * over TLS.
 */
export function cookieName(secure: boolean): string {
  return secure ? '__Host-portal' : 'portal';
}

const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** The cookie's value; null when it is missing, sent twice, or not in our format. */
export function readCookie(header: string | undefined, name: string): string | null {
  const values = (header ?? '')
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part.startsWith(`${name}=`))
    .map((part) => part.slice(name.length + 1));
  const [value, ...more] = values;
  return value !== undefined && more.length === 0 && TOKEN.test(value) ? value : null;
}

export interface PortalCookieTerms {
  readonly secure: boolean;
  /** Whether the portal is shown in a frame of another site. */
  readonly framed: boolean;
  readonly maxAgeSeconds: number;
}

/** The `Set-Cookie` header of a session; an empty token with an age of 0 removes it. */
export function writeCookie(token: string, { secure, framed, maxAgeSeconds }: PortalCookieTerms): string {
  const site = framed ? 'SameSite=None; Partitioned' : 'SameSite=Strict';
  const parts = [`${cookieName(secure)}=${token}`, 'Path=/', 'HttpOnly', site, `Max-Age=${maxAgeSeconds}`];
  return [...parts, ...(secure ? ['Secure'] : [])].join('; ');
}
