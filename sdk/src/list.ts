import type { CallOptions, Transport } from './transport.js';
import type { EsimPlan } from './types.js';

export interface Page<T> {
  readonly data: readonly T[];
  readonly hasMore: boolean;
  /** Null on the last page. In the event feed it is never null. */
  readonly nextCursor: string | null;
}

/** A list. `await` returns the first page; `for await` iterates over the items of all pages. */
export class List<T, P extends Page<T> = Page<T>> implements PromiseLike<P>, AsyncIterable<T> {
  constructor(private readonly read: (cursor?: string) => Promise<P>) {}

  then<A = P, B = never>(
    fulfilled?: ((page: P) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.read().then(fulfilled, rejected);
  }

  async *pages(): AsyncGenerator<P, void, undefined> {
    let cursor: string | undefined;
    do {
      const page: P = await this.read(cursor);
      yield page;
      cursor = page.hasMore ? (page.nextCursor ?? undefined) : undefined;
    } while (cursor !== undefined);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page.data;
  }
}

/** A page of plans. `pooled`: the wholesaler shows all plans as one, so that only the usage has bytes. */
export interface PlanPage extends Page<EsimPlan> {
  readonly pooled: boolean;
}

/** Creates the list of a path. */
export function listOf<T, P extends Page<T> = Page<T>>(
  transport: Transport,
  path: string,
  filters: object = {},
  options: CallOptions = {},
): List<T, P> {
  return new List(async (cursor) => {
    const query = { ...filters, ...(cursor === undefined ? {} : { cursor }) };
    const { body } = await transport.send({ ...options, method: 'GET', path, query });
    const { data, has_more: hasMore = false, next_cursor: nextCursor = null, pooled } = body;
    return { data, hasMore, nextCursor, ...(pooled === undefined ? {} : { pooled }) } as P;
  });
}
