import { setTimeout as sleep } from 'node:timers/promises';
import { type AttackBed, openAttackBed } from './attacks/bed.js';
import { type AttackName, type AttackReport, ATTACKS, RATES } from './attacks/attacker.js';
import { HEALTHY_CALLS, type HealthyReport } from './attacks/healthy.js';
import type { Cleanups } from './cleanups.js';
import type { BenchOptions } from './options.js';
import { format, type Section } from './report/report.js';
import { quantile } from './report/statistics.js';

/** So long an attack works before it is looked at. */
const ATTACK_FIRST_MS = 4_000;
const MOST_RATIO = 2;
/** What one sample more or less moves. */
const NOISE_MS = 2;

interface Round {
  readonly attack: AttackName;
  readonly alone: HealthyReport;
  readonly beside: HealthyReport;
  readonly attacker: AttackReport;
}

/** Does whoever misuses one thing take the service from those who do not (D42, D43)? */
export async function benchAttacks(
  { quick, growth }: BenchOptions,
  cleanups: Cleanups,
): Promise<readonly Section[]> {
  const { orders, deliveries, minFreeGb } = growth;
  const bed = await openAttackBed({ orders, deliveries, minFreeGb }, cleanups);
  const measureMs = quick ? 6_000 : 30_000;
  await bed.healthy.measure(measureMs / 2);
  const rounds: Round[] = [];
  // Endpoints that hang hold their slots for a minute: they come last.
  const names = (Object.keys(ATTACKS) as AttackName[]).sort(
    (a, b) => Number(a === 'hanging endpoints') - Number(b === 'hanging endpoints'),
  );
  for (const attack of names) {
    const round = await attackOnce(bed, attack, measureMs);
    rounds.push(round);
    process.stderr.write(`${attack}: ${describe(round)}\n`);
  }
  return [sectionOf(rounds, orders, deliveries)];
}

/** Alone before and after, and beside: what the rest of the machine does is in both. */
async function attackOnce(bed: AttackBed, attack: AttackName, measureMs: number): Promise<Round> {
  const before = await bed.healthy.measure(measureMs);
  await bed.attacker.begin(attack);
  await sleep(ATTACK_FIRST_MS);
  const beside = await bed.healthy.measure(measureMs);
  const attacker = await bed.attacker.end();
  await bed.settle();
  const alone = together(before, await bed.healthy.measure(measureMs));
  return { attack, alone, beside, attacker };
}

function together(one: HealthyReport, other: HealthyReport): HealthyReport {
  const latencies = { ...one.latencies };
  for (const call of HEALTHY_CALLS)
    latencies[call] = [...one.latencies[call], ...other.latencies[call]].sort((a, b) => a - b);
  const errors: Record<string, number> = { ...one.errors };
  for (const [name, count] of Object.entries(other.errors)) errors[name] = (errors[name] ?? 0) + count;
  return { latencies, errors };
}

function sectionOf(rounds: readonly Round[], orders: number, deliveries: number): Section {
  const ratios = rounds.flatMap((round) => HEALTHY_CALLS.map((call) => ratioOf(round, call)));
  const slower = ratios.filter(({ isSlower }) => isSlower).length;
  return {
    title: `Attacks: a healthy partner alone and beside each, ${orders.toLocaleString('en')} orders and ${deliveries.toLocaleString('en')} deliveries in the tables`,
    rows: [],
    table: [
      ['attack, and the healthy partner’s call', 'p95 alone', 'p95 beside (ms)', 'ratio', 'samples', ''],
      ...rounds.flatMap((round) => HEALTHY_CALLS.map((call) => lineOf(round, call))),
    ],
    notes: [
      `${ratios.length - slower} of ${ratios.length} within ${MOST_RATIO} times (or ${NOISE_MS} ms), ${slower} above.`,
      ...rounds.map((round) => `${round.attack}: ${describe(round)}`),
      `Attackers, each at its rate: ${rounds.map(({ attack }) => `${attack} ${RATES[attack]}/s`).join(', ')}; limits of calls a minute are off.`,
      'Alone: before and after the attack together. With anything else at work on the machine the ratios mean nothing.',
      'Both have a process of their own; an order to its webhook includes that it is provisioned.',
      'A live order beside the Sandbox flood of the same partner is not here (it needs a provider): test/orders-live/modes-apart.',
    ],
  };
}

interface Ratio {
  readonly aloneMs: number;
  readonly besideMs: number;
  readonly isSlower: boolean;
}

function ratioOf({ alone, beside }: Round, call: (typeof HEALTHY_CALLS)[number]): Ratio {
  const [aloneMs, besideMs] = [alone, beside].map(({ latencies }) => quantile(latencies[call], 0.95));
  const isSlower = besideMs! / aloneMs! > MOST_RATIO && besideMs! - aloneMs! > NOISE_MS;
  return { aloneMs: aloneMs!, besideMs: besideMs!, isSlower };
}

function lineOf(round: Round, call: (typeof HEALTHY_CALLS)[number]): string[] {
  const { aloneMs, besideMs, isSlower } = ratioOf(round, call);
  return [
    `${round.attack}: ${call}`,
    format(aloneMs),
    format(besideMs),
    (besideMs / aloneMs).toFixed(2),
    String(round.beside.latencies[call].length),
    isSlower ? `> ${MOST_RATIO}` : '',
  ];
}

function describe({ attacker, alone, beside }: Round): string {
  const errors = (report: HealthyReport): string => JSON.stringify(report.errors);
  return (
    `attacker ${attacker.cpu.toFixed(2)} cores, its answers ${JSON.stringify(attacker.answers)}, ` +
    `errors of the healthy one ${errors(beside)} (alone ${errors(alone)})`
  );
}
