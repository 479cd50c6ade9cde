import { compareText } from '../common/compare-text.js';
import type { Money } from '../common/money.js';
import type { PackageEntity } from './package.entity.js';
import { type Generation, GENERATIONS } from './package-terms.js';

/** A package at one partner's price. */
export interface PricedPackage {
  readonly item: PackageEntity;
  readonly price: Money;
}

/** The packages that no other one dominates, and the others, each with a kept package that dominates it. */
export interface Shelf<T extends PricedPackage> {
  readonly kept: readonly T[];
  readonly dropped: readonly { readonly dropped: T; readonly by: T }[];
}

/**
 * Removes every package that another one dominates. A dominates B if all of this holds:
 *
 * - Equal: coverage, kind, plan kind, minimum retail price, whether the buyer chooses the days, exit countries, networks, variant, activation
 *   policy, and the currency of the price. Equal too: the fair use's period, reset and consequence, or the text of the
 *   speed policy if no fair use is stated. Lists are compared as sets. Unknown equals unknown only.
 * - At least as much: data, days of validity, the maximum of chosen days, voice minutes, SMS, bytes at full speed, reduced
 *   speed, and days until the installation. Days only counts as no data. A package with chosen days counts with the
 *   price, data and validity of one day. An unknown value is at least as much as an unknown one only.
 * - At least as good: generation and hotspot. The best known value (5G, hotspot) is also at least as good as unknown.
 *   Unknown is at least as good as unknown only.
 * - Top-ups: A supports them on the same terms, or B supports none.
 * - Price: at most B's.
 * - If A and B are equal in all of this, A's id is smaller.
 *
 * The title, the notes, the region, the unit of data, the retail price and the name of a region do not count. Dominance
 * is transitive and has no cycles, so every dropped package has a kept one that dominates it.
 *
 * Sorts by price, then best first, so that a package can be dominated only by an earlier one, and compares each with the
 * kept ones of its group. Takes O(n log n + n k) for at most k kept packages in a group.
 */
export function shelve<T extends PricedPackage>(packages: readonly T[]): Shelf<T> {
  const kept: T[] = [];
  const dropped: { dropped: T; by: T }[] = [];
  const groups = new Map<string, Standing<T>[]>();
  for (const standing of packages.map(toStanding).sort(bestFirst)) {
    const group = groups.get(standing.group) ?? [];
    const by = group.find((better) => isAtLeast(better, standing));
    if (by) {
      dropped.push({ dropped: standing.entry, by: by.entry });
      continue;
    }
    kept.push(standing.entry);
    group.push(standing);
    groups.set(standing.group, group);
  }
  return { kept, dropped };
}

/** The comparable part of a package. */
interface Merits {
  /** Equal for packages that may dominate each other. */
  readonly group: string;
  /** More is better. */
  readonly amounts: readonly number[];
  readonly generation: Generation | null;
  readonly hotspot: boolean | null;
  /** The terms of top-ups; null without top-ups. */
  readonly topup: string | null;
}

interface Standing<T> extends Merits {
  readonly entry: T;
  readonly id: string;
  readonly price: number;
}

/** Packages in memory do not change, and some list hundreds of networks. */
const merits = new WeakMap<PackageEntity, Merits>();

function toStanding<T extends PricedPackage>(entry: T): Standing<T> {
  const { item, price } = entry;
  let known = merits.get(item);
  if (!known) merits.set(item, (known = meritsOf(item)));
  return { ...known, group: `${price.currency} ${known.group}`, entry, id: item.id, price: price.amount };
}

function meritsOf(item: PackageEntity): Merits {
  const { terms } = item;
  const fair = terms.fairUse;
  const limits = [fair?.fullSpeedBytes ?? null, fair?.kbps ?? null, terms.installWithinDays];
  const group = JSON.stringify([
    asSet(item.coverage),
    item.kind,
    [terms.plan, item.unlimited, terms.maxDays === null, terms.minRetailPrice],
    terms.exitCountries && asSet(terms.exitCountries),
    asSet(item.networks.map((net) => [net.country, net.operator, ...asSet(net.generations)].join(' '))),
    [terms.variant, item.activationPolicy],
    fair ? [fair.per, fair.resets, fair.then] : item.speedPolicy,
    limits.map((limit) => limit === null),
  ]);
  return {
    group,
    amounts: [
      item.dataBytes ?? 0,
      item.validityDays,
      terms.maxDays ?? 0,
      item.voiceMinutes ?? 0,
      item.smsCount ?? 0,
      ...limits.map((limit) => limit ?? 0),
    ],
    generation: terms.maxGeneration,
    hotspot: terms.hotspot,
    topup: item.topupSupported
      ? JSON.stringify([asSet(terms.topup.kinds), terms.topup.behavior, terms.topup.maxCount])
      : null,
  };
}

function asSet(values: readonly string[]): string[] {
  return [...new Set(values)].sort();
}

/** A linear extension of dominance. */
function bestFirst(a: Standing<unknown>, b: Standing<unknown>): number {
  return (
    a.price - b.price ||
    compareAmounts(b, a) ||
    rankOf(GENERATIONS, b.generation) - rankOf(GENERATIONS, a.generation) ||
    rankOf(HOTSPOT, b.hotspot) - rankOf(HOTSPOT, a.hotspot) ||
    Number(b.topup !== null) - Number(a.topup !== null) ||
    compareText(a.id, b.id)
  );
}

function compareAmounts(a: Merits, b: Merits): number {
  const at = a.amounts.findIndex((amount, index) => amount !== b.amounts[index]);
  return at === -1 ? 0 : a.amounts[at]! - b.amounts[at]!;
}

/** Worst first. */
const HOTSPOT = [false, true] as const;

function rankOf<V>(values: readonly V[], value: V | null): number {
  return value === null ? -1 : values.indexOf(value);
}

/** Whether `a` dominates `b`, which is in the same group and sorted behind it. */
function isAtLeast(a: Merits, b: Merits): boolean {
  return (
    a.amounts.every((amount, index) => amount >= b.amounts[index]!) &&
    isAsGood(GENERATIONS, a.generation, b.generation) &&
    isAsGood(HOTSPOT, a.hotspot, b.hotspot) &&
    (b.topup === null || a.topup === b.topup)
  );
}

/** @param values worst first */
function isAsGood<V>(values: readonly V[], a: V | null, b: V | null): boolean {
  if (b === null) return a === null || a === values.at(-1);
  return a !== null && values.indexOf(a) >= values.indexOf(b);
}
