/** The two modes of the service, chosen by the API key (spec section 1, D14). */
export const MODES = ['sandbox', 'live'] as const;
export type Mode = (typeof MODES)[number];

/** Creates one value per mode. Use it where Sandbox must not delay Live (D41). */
export function perMode<T>(make: (mode: Mode) => T): Readonly<Record<Mode, T>> {
  return { live: make('live'), sandbox: make('sandbox') };
}
