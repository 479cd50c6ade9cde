import { LRUCache } from 'lru-cache';

/**
 * Keeps the values of the last `entries` keys used. By size, one each: the library's own `max` reserves the memory of
 * all entries when it is made, a start of 70 ms and some megabytes for what is mostly empty.
 */
export function boundedCache<V extends object | string | number>(entries: number): LRUCache<string, V> {
  return new LRUCache<string, V>({ maxSize: entries, sizeCalculation: () => 1 });
}
