import { useEffect, useLayoutEffect, useRef, type RefObject } from 'react';

/** `at` counts from the top of the document, so that scrolling does not change it. */
type Anchor = { row: HTMLElement; at: number };

const placeOf = (row: HTMLElement): number => row.getBoundingClientRect().top + window.scrollY;

/**
 * The first visible row by binary search, because rows are in vertical order. Null while the list's first row is
 * visible.
 */
function firstVisible(rows: HTMLCollectionOf<HTMLElement>): Anchor | null {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (rows[middle]!.getBoundingClientRect().bottom > 0) high = middle;
    else low = middle + 1;
  }
  const row = rows[low];
  return row === undefined || low === 0 ? null : { row, at: placeOf(row) };
}

/**
 * Keeps the reader's row in place while rows are inserted above it. React does not move existing rows, so the element
 * itself is the anchor. Attach it to the table's container.
 */
export function useKeptPlace(rows: readonly unknown[]): RefObject<HTMLElement | null> {
  const frame = useRef<HTMLElement | null>(null);
  const anchor = useRef<Anchor | null>(null);

  useEffect(() => {
    const remember = () => {
      const body = frame.current?.querySelector('tbody');
      anchor.current = body ? firstVisible(body.rows) : null;
    };
    window.addEventListener('scroll', remember, { passive: true });
    return () => window.removeEventListener('scroll', remember);
  }, []);

  useLayoutEffect(() => {
    const last = anchor.current;
    if (!last?.row.isConnected) return;
    const moved = placeOf(last.row) - last.at;
    anchor.current = { row: last.row, at: last.at + moved };
    if (Math.abs(moved) >= 1) window.scrollBy(0, moved);
  }, [rows]);

  return frame;
}
