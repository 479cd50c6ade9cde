/** The admin API refused a call of the embedded start. */
export class AdminCallFailed extends Error {
  constructor(
    call: string,
    readonly status: number,
    readonly code: string | undefined,
    detail: string | undefined,
  ) {
    super(`${call}: ${status} ${code}: ${detail}`);
    this.name = 'AdminCallFailed';
  }
}

/** Talks to our own admin API over loopback: the demo is made with the operations that the portal uses. */
export class AdminClient {
  constructor(
    private readonly baseUrl: string,
    private readonly token: string,
  ) {}

  /** The answer's `data`. @throws AdminCallFailed with the problem's code. */
  async call<T>(method: 'GET' | 'POST' | 'PATCH', path: string, body?: unknown): Promise<T> {
    const response = await fetch(`${this.baseUrl}/internal/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        'x-actor': 'embedded-start',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as { data: T; code?: string; detail?: string };
    if (!response.ok)
      throw new AdminCallFailed(`${method} ${path}`, response.status, answer.code, answer.detail);
    return answer.data;
  }
}
