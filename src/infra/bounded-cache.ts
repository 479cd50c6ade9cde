import { LRUCache } from 'lru-cache';

/**
 * An LRU cache of at most `entries` values. It uses the size option, one per entry: the library's own `max` allocates
 * memory for all entries at creation, which takes 70 ms and several megabytes.
 */
export function boundedCache<V extends object | string | number>(entries: number): LRUCache<string, V> {
  return new LRUCache<string, V>({ maxSize: entries, sizeCalculation: () => 1 });
}
