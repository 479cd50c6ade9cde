/** One page of a list (D5, D11): `nextCursor` is null on the last page, except on the event feed (D39). */
export interface Page<T> {
  readonly items: readonly T[];
  readonly hasMore: boolean;
  readonly nextCursor: string | null;
}

/** The same page with every item mapped. */
export function mapPage<T, U>(page: Page<T>, map: (item: T) => U): Page<U> {
  return { items: page.items.map(map), hasMore: page.hasMore, nextCursor: page.nextCursor };
}
