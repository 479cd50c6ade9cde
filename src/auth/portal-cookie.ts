/** `__Host-` binds the cookie to its host and to https: no other host can set it. Without TLS no browser takes that name. */
export function cookieName(secure: boolean): string {
  return secure ? '__Host-portal' : 'portal';
}

const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** The cookie's value; null when it is missing, sent twice, or cannot be one of ours. */
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
  /** The portal is shown in a frame of another site. */
  readonly framed: boolean;
  readonly maxAgeSeconds: number;
}

/** `Set-Cookie` of a session; an empty token with an age of 0 removes it. */
export function writeCookie(token: string, { secure, framed, maxAgeSeconds }: PortalCookieTerms): string {
  const site = framed ? 'SameSite=None; Partitioned' : 'SameSite=Strict';
  const parts = [`${cookieName(secure)}=${token}`, 'Path=/', 'HttpOnly', site, `Max-Age=${maxAgeSeconds}`];
  return [...parts, ...(secure ? ['Secure'] : [])].join('; ');
}
