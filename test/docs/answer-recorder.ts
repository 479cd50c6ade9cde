/** Fixed times by field, as in one plausible run, because real ones differ between runs. */
const TIMES: Readonly<Record<string, string>> = {
  created_at: '2026-11-21T10:00:00.000Z',
  updated_at: '2026-11-21T10:00:00.412Z',
  issued_at: '2026-11-21T10:00:00.412Z',
  failed_at: '2026-11-21T10:00:00.412Z',
  completed_at: '2026-11-21T10:00:00.412Z',
  decided_at: '2026-11-21T14:30:00.000Z',
  activated_at: '2026-11-21T10:05:00.000Z',
  at: '2026-11-21T10:00:00.000Z',
  as_of: '2026-11-21T10:05:00.000Z',
  starts_at: '2026-11-21T10:05:00.000Z',
  ends_at: '2026-11-28T10:05:00.000Z',
  expires_at: '2026-11-28T10:05:00.000Z',
  install_by: '2027-05-20T10:00:00.412Z',
  cancelable_until: '2027-05-20T10:00:00.412Z',
};
const FIRST_ICCID = 8_910_300_000_001_234_567n;

/** Non-id fields whose values differ between runs. A QR code image would be too long for the page. */
const FIXED: Readonly<Record<string, unknown>> = {
  latency_ms: 3.25,
  remote_address: '203.0.113.7',
  svg: '<svg>...</svg>',
  png_base64: 'iVBORw0KGgo=',
  access_code: '40718236',
};

/**
 * Records responses and replaces values that differ between runs. Ids, ICCIDs and matching ids are numbered in order of
 * appearance, times come from their field, and cursors are unchanged because they are opaque.
 */
export class AnswerRecorder {
  readonly answers: Record<string, unknown> = {};
  readonly events: Record<string, unknown> = {};
  private readonly names = new Map<string, string>();
  private readonly counts = new Map<string, number>();

  answer(operationId: string, body: unknown): void {
    this.answers[operationId] = this.settled('', body);
  }

  event(body: { readonly type: string }): void {
    this.events[body.type] ??= this.settled('', body);
  }

  private settled(field: string, value: unknown): unknown {
    if (value === null) return null;
    if (field in FIXED) return FIXED[field];
    if (Array.isArray(value)) return value.map((item) => this.settled('', item));
    if (typeof value === 'object')
      return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, this.settled(key, part)]));
    return typeof value === 'string' ? this.settledText(field, value) : value;
  }

  private settledText(field: string, text: string): string {
    if (/^\d{4}-\d\d-\d\dT/.test(text)) return timeOf(field);
    if (field === 'next_cursor' && !text.startsWith('evt_')) return 'WyIyMDI2LTExLTIxVDEwOjAwOjAwLjAwMFoiXQ';
    return text
      .replaceAll(/(?<=\/i\/)[\w-]{43}$/g, '<token>')
      .replaceAll(/\breq_[0-9A-Z]{26}\b/g, 'req_01KAEXAMPLE000000000000000')
      .replaceAll(/\b([a-z]+)_01[0-9A-Z]{24}\b/g, (id, prefix: string) =>
        this.named(prefix, id, (n) => `${prefix}_01KAEXAMPLE${String(n).padStart(15, '0')}`),
      )
      .replaceAll(/\b89\d{17}\b/g, (iccid) =>
        this.named('iccid', iccid, (n) => String(FIRST_ICCID + BigInt(n))),
      )
      .replaceAll(/(?<=\$|%24|^)[0-9A-F]{24}\b/g, (id) =>
        this.named('matching', id, (n) => (n === 0 ? 'MATCHING-ID' : `MATCHING-ID-${n}`)),
      );
  }

  private named(kind: string, value: string, name: (n: number) => string): string {
    const known = this.names.get(value);
    if (known !== undefined) return known;
    const n = this.counts.get(kind) ?? 0;
    this.counts.set(kind, n + 1);
    this.names.set(value, name(n));
    return name(n);
  }
}

function timeOf(field: string): string {
  const time = TIMES[field];
  if (time === undefined) throw new Error(`no time is chosen for ${field}`);
  return time;
}
