import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { eventually, type HttpClient, type TestDatabase, type TestReceiver } from '../harness/index.js';

const PAGE = 7;

/** An event as the feed shows it: its id and its exact bytes. */
export interface Seen {
  readonly id: string;
  readonly bytes: string;
}

/** A partner who asks again and again from where it was, and never looks back (D39). */
export class Poller {
  readonly seen: Seen[] = [];
  pages = 0;
  private cursor = '';

  constructor(
    private readonly api: HttpClient,
    private readonly limit = PAGE,
  ) {}

  get ids(): string[] {
    return this.seen.map(({ id }) => id);
  }

  /** Reads until a page says that there is no more. */
  async catchUp(): Promise<void> {
    for (let more = true; more;) more = await this.readPage();
  }

  /** Reads all the time until `work` has ended, and once more after it. */
  async readDuring(work: Promise<unknown>): Promise<void> {
    let working = true;
    const ended = work.finally(() => (working = false));
    // Heard below; a failure must not end the process while a page is read.
    ended.catch(() => undefined);
    while (working) {
      await this.catchUp();
      await sleep(5);
    }
    await ended;
    await this.catchUp();
  }

  private async readPage(): Promise<boolean> {
    const after = this.cursor === '' ? '' : `&after=${encodeURIComponent(this.cursor)}`;
    const answer = await this.api.get(`/v1/events?limit=${this.limit}${after}`);
    expect(answer.status, answer.text).toBe(200);
    const { data, has_more, next_cursor } = answer.body as Page;
    const bytes = bytesOf(answer.text);
    expect(bytes, answer.text).toHaveLength(data.length);
    this.seen.push(...data.map(({ id }, index) => ({ id, bytes: bytes[index]! })));
    this.cursor = next_cursor;
    this.pages++;
    return has_more;
  }
}

interface Page {
  readonly data: readonly { readonly id: string }[];
  readonly has_more: boolean;
  readonly next_cursor: string;
}

/** The items' own bytes, cut out of the answer's text: parsing would lose what differs in bytes only. */
function bytesOf(text: string): string[] {
  const list = /"data":\[(.*)\],"has_more":/s.exec(text)?.[1] ?? '';
  return list === '' ? [] : list.split(/(?<=\}),(?=\{"id":"evt_)/);
}

export interface FeedParts {
  readonly database: TestDatabase;
  readonly partnerId: string;
  readonly api: HttpClient;
  readonly receiver: TestReceiver;
}

/** The poller saw every committed event once, in the order that a later reader sees too, with the webhooks' bytes. */
export async function expectWholeFeed(poller: Poller, parts: FeedParts): Promise<void> {
  const { rows } = await parts.database.pool.query<{ id: string }>(
    'SELECT id FROM events WHERE partner_id = $1',
    [parts.partnerId],
  );
  expect(poller.ids.toSorted()).toEqual(rows.map((row) => row.id).sort());
  const later = new Poller(parts.api, 50);
  await later.catchUp();
  expect(later.seen).toEqual(poller.seen);
  const webhooks = (): string[] => [...new Set(parts.receiver.received.map(({ body }) => body))];
  await eventually('every webhook', () => webhooks().length >= rows.length);
  expect(webhooks().sort()).toEqual(poller.seen.map(({ bytes }) => bytes).sort());
}
