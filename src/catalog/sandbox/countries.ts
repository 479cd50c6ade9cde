import { AFRICAN_COUNTRIES } from './countries-africa.js';
import { AMERICAN_COUNTRIES } from './countries-americas.js';
import { ASIAN_COUNTRIES } from './countries-asia.js';
import { EUROPEAN_COUNTRIES } from './countries-europe.js';
import { OCEANIAN_COUNTRIES } from './countries-oceania.js';
import type { SandboxCountry } from './country.js';

/**
 * Every country the sandbox sells in, by code ascending, so that any selection from it is a sorted coverage.
 * The operators are real, so that what a partner builds on the sandbox looks like Live.
 */
export const SANDBOX_COUNTRIES: readonly SandboxCountry[] = [
  ...AFRICAN_COUNTRIES,
  ...AMERICAN_COUNTRIES,
  ...ASIAN_COUNTRIES,
  ...EUROPEAN_COUNTRIES,
  ...OCEANIAN_COUNTRIES,
].sort((a, b) => (a.code < b.code ? -1 : 1));
