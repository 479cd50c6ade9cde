import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useRef, type ReactNode } from 'react';
import type { Query } from '../api/client.ts';
import { pages } from '../api/queries.ts';
import type { Mode } from '../api/types.ts';
import { Empty, ErrorNote, Loading } from './feedback.tsx';

type MoreProps = { more: boolean; busy: boolean; load: () => void };

/** Loads the next page when it comes into sight, or at a press. */
export function LoadMore({ more, busy, load }: MoreProps) {
  const end = useRef<HTMLDivElement | null>(null);
  useEffect(() => {
    const element = end.current;
    if (!element || !more || busy) return;
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && load(), {
      rootMargin: '600px',
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [more, busy, load]);
  if (!more) return null;
  return (
    <div className="load-more" ref={end}>
      <button type="button" className="button" disabled={busy} onClick={load}>
        {busy ? 'Loading …' : 'Load more'}
      </button>
    </div>
  );
}

type Props<T> = {
  path: string;
  mode: Mode | null;
  filters?: Query;
  label: string;
  columns: readonly string[];
  row: (item: T) => ReactNode;
  /** Shown when the list is empty without any filter. */
  empty: ReactNode;
};

/** A table over a list of the API: its pages follow as one scrolls. */
export function List<T>({ path, mode, filters = {}, label, columns, row, empty }: Props<T>) {
  const query = useInfiniteQuery(pages<T>(path, mode, filters));
  const { fetchNextPage } = query;
  if (query.isPending) return <Loading />;
  if (query.isError) return <ErrorNote error={query.error} retry={() => void query.refetch()} />;
  const items = query.data.pages.flatMap((page) => page.data);
  const filtered = Object.values(filters).some((value) => value !== undefined);
  if (items.length === 0) return filtered ? <NothingFound /> : empty;
  return (
    <>
      <Table label={label} columns={columns}>
        {items.map(row)}
      </Table>
      <LoadMore more={query.hasNextPage} busy={query.isFetchingNextPage} load={() => void fetchNextPage()} />
    </>
  );
}

function NothingFound() {
  return (
    <Empty title="Nothing like that">
      <p>Take a filter away to see more.</p>
    </Empty>
  );
}

/** On a narrow screen each cell carries the name of its column: pass it as `data-column`. */
export function Table({
  label,
  columns,
  children,
}: {
  label: string;
  columns: readonly string[];
  children: ReactNode;
}) {
  return (
    <div className="table-frame" role="group" aria-label={`${label}, scrolls`} tabIndex={0}>
      <table aria-label={label}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
