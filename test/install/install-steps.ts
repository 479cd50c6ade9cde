import { expect } from 'vitest';
import type { HttpClient, TestService } from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';

export const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Mobile/15E148 Safari/604.1';
export const COMPUTER =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36';

/** A created link, with the path of its page. */
export interface TestLink {
  readonly id: string;
  readonly esimId: string;
  readonly path: string;
  readonly token: string;
  readonly accessCode: string | null;
}

export async function createLink(api: HttpClient, esimId: string, terms: object = {}): Promise<TestLink> {
  const answer = await api.post(`/v1/esims/${esimId}/install-links`, terms);
  expect(answer.status, answer.text).toBe(201);
  const { id, url, access_code: accessCode } = answer.body.data as Json;
  const path = new URL(url as string).pathname;
  return {
    id: id as string,
    esimId,
    path,
    token: path.slice('/i/'.length),
    accessCode: accessCode as string,
  };
}

export interface Page {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** A browser on the install page. */
export class Visitor {
  constructor(
    private readonly base: string,
    private readonly headers: Readonly<Record<string, string>> = { 'user-agent': IPHONE },
  ) {}

  static of(service: TestService, headers?: Readonly<Record<string, string>>): Visitor {
    return new Visitor(service.process.install!.url, headers);
  }

  async open(path: string, more: Readonly<Record<string, string>> = {}, method = 'GET'): Promise<Page> {
    return this.send(path, { method, headers: { ...this.headers, ...more } });
  }

  /** Sends the form of the access code. */
  async enter(path: string, code: string): Promise<Page> {
    return this.send(path, {
      method: 'POST',
      headers: { ...this.headers, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ code }).toString(),
    });
  }

  private async send(path: string, options: RequestInit): Promise<Page> {
    const response = await fetch(this.base + path, { ...options, redirect: 'manual' });
    return { status: response.status, headers: response.headers, text: await response.text() };
  }
}

/** The eSIM's installation codes, none of which may appear in a log. */
export async function codesOf(api: HttpClient, esimId: string): Promise<{ smdp: string; matching: string }> {
  const { smdp_address: smdp, matching_id: matching } = (await api.get(`/v1/esims/${esimId}`)).body
    .data as Json;
  return { smdp: smdp as string, matching: matching as string };
}
