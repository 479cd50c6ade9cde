import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState, type ReactNode, type RefObject } from 'react';
import type { Query } from '../api/client.ts';
import { pages } from '../api/queries.ts';
import type { Mode } from '../api/types.ts';
import { Empty, ErrorNote, Loading } from './feedback.tsx';

/** Maximum number of consecutive empty pages before asking the user to continue: each searches thousands of rows. */
const EMPTY_PAGES_AT_ONCE = 5;

type MoreProps = {
  more: boolean;
  busy: boolean;
  load: () => void;
  /** Number of empty pages at the end: a search may end a page before it has found anything. */
  emptyPages?: number;
};

/** Loads the next page when it scrolls into view, or on a button press. */
export function LoadMore({ more, busy, load, emptyPages = 0 }: MoreProps) {
  const end = useRef<HTMLDivElement | null>(null);
  const [allowed, setAllowed] = useState(EMPTY_PAGES_AT_ONCE);
  const rests = emptyPages >= allowed;
  useEffect(() => {
    const element = end.current;
    if (!element || !more || busy || rests) return;
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && load(), {
      rootMargin: '600px',
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [more, busy, load, rests]);
  if (!more) return null;
  if (emptyPages > 0)
    return (
      <SearchOn
        rests={rests}
        end={end}
        goOn={() => {
          setAllowed(emptyPages + EMPTY_PAGES_AT_ONCE);
          load();
        }}
      />
    );
  return (
    <div className="table-foot" ref={end}>
      <button type="button" className="button small" disabled={busy} onClick={load}>
        {busy ? 'Loading…' : 'Load more'}
      </button>
    </div>
  );
}

type SearchProps = { rests: boolean; end: RefObject<HTMLDivElement | null>; goOn: () => void };

/** Shown while the latest pages are empty, because older rows may still match. */
function SearchOn({ rests, end, goOn }: SearchProps) {
  return (
    <div className="table-foot" ref={end}>
      <p role="status">{rests ? 'No matches so far. There is more to search.' : 'Searching further back…'}</p>
      <button type="button" className="button small" disabled={!rests} onClick={goOn}>
        Search further back
      </button>
    </div>
  );
}

type Props<T> = {
  path: string;
  mode: Mode | null;
  filters?: Query;
  /** Whether the user has set a filter; default: whether there are filters. */
  isFiltered?: boolean;
  label: string;
  columns: readonly Column[];
  row: (item: T) => ReactNode;
  /** Shown when the list is empty without a filter. */
  empty: ReactNode;
};

/** A table over a list of the API that loads further pages on scrolling. */
export function List<T>({ path, mode, filters = {}, isFiltered, label, columns, row, empty }: Props<T>) {
  const query = useInfiniteQuery(pages<T>(path, mode, filters));
  const { fetchNextPage } = query;
  if (query.isPending) return <Loading />;
  const load = () => void fetchNextPage();
  if (query.isError && !query.isFetchNextPageError)
    return <ErrorNote error={query.error} retry={() => void query.refetch()} />;
  const { pages: read } = query.data;
  const items = read.flatMap((page) => page.data);
  const filtered = isFiltered ?? Object.values(filters).some((value) => value !== undefined);
  if (items.length === 0 && query.isPlaceholderData) return <Loading />;
  if (items.length === 0 && !query.hasNextPage) return filtered ? <NothingFound /> : empty;
  return (
    <>
      {items.length > 0 && (
        <Table label={label} columns={columns} busy={query.isPlaceholderData}>
          {items.map(row)}
        </Table>
      )}
      {query.isFetchNextPageError ? (
        <ErrorNote error={query.error} retry={load} />
      ) : (
        <LoadMore
          key={JSON.stringify([path, mode, filters])}
          more={query.hasNextPage}
          busy={query.isFetchingNextPage || query.isPlaceholderData}
          load={load}
          emptyPages={read.length - 1 - read.findLastIndex((page) => page.data.length > 0)}
        />
      )}
    </>
  );
}

function NothingFound() {
  return (
    <Empty title="No matches" icon="search">
      <p>Remove a filter to see more.</p>
    </Empty>
  );
}

/** A column by its name. `number` aligns it right; `wide` hides it first; `hidden` names it for screen readers only. */
export type Column = string | readonly [name: string, kind: 'number' | 'wide' | 'hidden'];

const CLASSES = { number: 'num', wide: 'at-wide', hidden: '' } as const;

/**
 * A narrow screen has no columns. There, cells of the classes `at-state`, `at-end`, `at-time` and `at-note` have their
 * places in a row of two or three lines, and other cells show their `data-label`.
 */
export function Table({
  label,
  columns,
  busy = false,
  className = '',
  children,
}: {
  label: string;
  columns: readonly Column[];
  /** True while the rows are still the previous ones and the requested ones are loading. */
  busy?: boolean;
  className?: string;
  children: ReactNode;
}) {
  return (
    <div
      className="table-wrap"
      aria-busy={busy}
      role="group"
      aria-label={`${label}, scrollable`}
      tabIndex={0}
    >
      <table className={`table ${className}`} aria-label={label}>
        <thead>
          <tr>
            {columns.map((column) => {
              const [name, kind] = typeof column === 'string' ? [column] : column;
              return (
                <th key={name} scope="col" className={kind && CLASSES[kind]}>
                  {kind === 'hidden' ? <span className="hidden">{name}</span> : name}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
