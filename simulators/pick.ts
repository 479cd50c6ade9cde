/**
 * One of `values` for entry `i`: the same one in every run, evenly spread, and independent of the choices by other
 * primes.
 */
export function pick<T>(values: readonly T[], i: number, prime: number): T {
  return values[Math.floor(((i * Math.sqrt(prime)) % 1) * values.length)]!;
}
