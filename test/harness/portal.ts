import { type ApiAnswer, type CallOptions, HttpClient } from './http-client.js';

export interface SessionTerms {
  readonly scopes?: readonly string[];
  readonly modes?: readonly string[];
  readonly return_url?: string;
  readonly ttl_seconds?: number;
}

/** A browser with a portal session, which sends its cookie and the headers of the portal's own page. */
export class PortalBrowser {
  private readonly http: HttpClient;

  constructor(
    readonly baseUrl: string,
    /** `name=value`, as set by the exchange. */
    readonly cookie: string,
  ) {
    this.http = new HttpClient(baseUrl, null);
  }

  get(path: string): Promise<ApiAnswer> {
    return this.call('GET', path);
  }

  post(path: string, body?: unknown): Promise<ApiAnswer> {
    return this.call('POST', path, body === undefined ? {} : { body });
  }

  /** @param path the part after `/portal/v1/` */
  call(method: string, path: string, options: CallOptions = {}): Promise<ApiAnswer> {
    const headers = { cookie: this.cookie, 'sec-fetch-site': 'same-origin', ...options.headers };
    return this.http.call(method, `/portal/v1/${path}`, { ...options, headers });
  }
}

/**
 * Mints the code of a new session's link.
 * @throws Error when the admin API refuses
 */
export async function mintCode(
  admin: HttpClient,
  partnerId: string,
  terms: SessionTerms = {},
): Promise<string> {
  const body = { actor: { id: 'user-17', name: 'Ada' }, ...terms };
  const minted = await admin.post(`/internal/v1/partners/${partnerId}/portal-sessions`, body);
  if (minted.status !== 201) throw new Error(`no session: ${minted.status} ${minted.text}`);
  return (minted.body.data.url as string).split('#code=')[1]!;
}

export function exchange(portalUrl: string, code: string): Promise<ApiAnswer> {
  return new HttpClient(portalUrl, null).post('/portal/v1/session', { code });
}

/** Opens the link like a browser. */
export async function openPortal(
  admin: HttpClient,
  portalUrl: string,
  partnerId: string,
  terms: SessionTerms = {},
): Promise<PortalBrowser> {
  const answer = await exchange(portalUrl, await mintCode(admin, partnerId, terms));
  if (answer.status !== 200) throw new Error(`no session: ${answer.status} ${answer.text}`);
  return new PortalBrowser(portalUrl, answer.headers.get('set-cookie')!.split(';')[0]!);
}
