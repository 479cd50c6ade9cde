/** Formats an amount in minor units for people: `4.50 USD`. Currencies without cents get no decimals. */
export function moneyText({ amount, currency }: { amount: number; currency: string }): string {
  const digits =
    new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits ?? 2;
  return `${(amount / 10 ** digits).toFixed(digits)} ${currency}`;
}

/** 1 GB is 10^9 bytes. null means unlimited. */
export function bytesText(bytes: number | null): string {
  if (bytes === null) return 'unlimited';
  return bytes >= 1e9 ? `${Number((bytes / 1e9).toFixed(2))} GB` : `${Number((bytes / 1e6).toFixed(1))} MB`;
}

/** `1 day`, `2 days` */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Local time of day. */
export function clockText(now = new Date()): string {
  return now.toTimeString().slice(0, 8);
}
