import type { CallOptions, Transport } from './transport.js';

export interface Page<T> {
  readonly data: readonly T[];
  readonly hasMore: boolean;
  /** Null on the last page. In the event feed it is never null. */
  readonly nextCursor: string | null;
}

/** A list. `await` returns the first page; `for await` iterates over the items of all pages. */
export class List<T> implements PromiseLike<Page<T>>, AsyncIterable<T> {
  constructor(private readonly read: (cursor?: string) => Promise<Page<T>>) {}

  then<A = Page<T>, B = never>(
    fulfilled?: ((page: Page<T>) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.read().then(fulfilled, rejected);
  }

  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    let cursor: string | undefined;
    do {
      const page: Page<T> = await this.read(cursor);
      yield page;
      cursor = page.hasMore ? (page.nextCursor ?? undefined) : undefined;
    } while (cursor !== undefined);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page.data;
  }
}

/** Creates the list of a path. */
export function listOf<T>(
  transport: Transport,
  path: string,
  filters: object = {},
  options: CallOptions = {},
): List<T> {
  return new List(async (cursor) => {
    const query = { ...filters, ...(cursor === undefined ? {} : { cursor }) };
    const { body } = await transport.send({ ...options, method: 'GET', path, query });
    return { data: body.data as T[], hasMore: body.has_more ?? false, nextCursor: body.next_cursor ?? null };
  });
}
