import { useSyncExternalStore } from 'react';

/** Logs of servers have 24 hours, so times that are compared with them have 24 hours too. */
const hourCycle = 'h23';
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', hourCycle });
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium', hourCycle });
const CLOCK_SHORT = new Intl.DateTimeFormat(undefined, { timeStyle: 'short', hourCycle });
const DAY = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });
const DAY_OF_YEAR = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });

/** `Nov 24`, with the year unless it is this year's. */
export function day(date: Date): string {
  return (date.getFullYear() === new Date().getFullYear() ? DAY : DAY_OF_YEAR).format(date);
}

/** `15:01:58` today, otherwise `Nov 24, 09:12`. */
function short(date: Date): string {
  if (date.toDateString() === new Date().toDateString()) return CLOCK.format(date);
  return `${day(date)}, ${CLOCK_SHORT.format(date)}`;
}

const FORMATS = {
  full: (date: Date) => FULL.format(date),
  short,
  clock: (date: Date) => CLOCK.format(date),
  day,
};

/** `2026-11-22 13:05:07.123 UTC` */
function utc(date: Date): string {
  return `${date.toISOString().replace('T', ' ').replace('Z', '')} UTC`;
}

/** A time in the viewer's zone; UTC on hover. */
export function Time({ at, as = 'full' }: { at: string; as?: keyof typeof FORMATS }) {
  const date = new Date(at);
  return (
    <time dateTime={at} title={utc(date)}>
      {FORMATS[as](date)}
    </time>
  );
}

const MOMENT = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/;

/** Text from the API, with its timestamps formatted like all other times. */
export function TextWithTimes({ text }: { text: string }) {
  return text.split(MOMENT).map((part, at) => (MOMENT.test(part) ? <Time key={at} at={part} /> : part));
}

let now = Date.now();
const listeners = new Set<() => void>();
let timer: number | undefined;

function subscribe(listener: () => void) {
  listeners.add(listener);
  // The clock does not run without subscribers.
  if (timer === undefined) now = Date.now();
  timer ??= window.setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, 1_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    window.clearInterval(timer);
    timer = undefined;
  };
}

/** The current time, updated every second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

/** Formats milliseconds as `3 min 20 s`; at most two units. */
export function inWords(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  const units: [number, string][] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ];
  const first = units.findIndex(([count]) => count > 0);
  if (first === -1) return '0 s';
  return units
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ');
}

/** `in 12 s`, counted down; `now` when it is due. */
export function Countdown({ to }: { to: string }) {
  const left = new Date(to).getTime() - useNow();
  return (
    <time dateTime={to} title={utc(new Date(to))}>
      {left <= 500 ? 'now' : `in ${inWords(left)}`}
    </time>
  );
}

/** `3 min ago`. */
export function Ago({ at }: { at: string }) {
  const past = useNow() - new Date(at).getTime();
  return (
    <time dateTime={at} title={utc(new Date(at))}>
      {past < 5_000 ? 'just now' : `${inWords(past)} ago`}
    </time>
  );
}
