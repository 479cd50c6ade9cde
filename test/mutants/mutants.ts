/** A plausible bug: one change of the source, and tests of which at least one must fail. */
export interface Mutant extends Edit {
  readonly name: string;
  /** Further changes that the bug needs, because the product checks twice. */
  readonly also?: readonly Edit[];
  readonly tests: readonly string[];
  /** The tests run the build or create their own schema, so both are built from the mutant. */
  readonly build?: true;
}

export interface Edit {
  readonly file: string;
  /** Must occur in the file exactly once. */
  readonly find: string;
  readonly replace: string;
}

const ORDER_JOBS = 'src/orders/order-jobs.repository.ts';
const PURCHASE_JOBS = 'src/purchases/purchase-jobs.repository.ts';
const WORKER_NOTIFIER = 'src/infra/jobs/worker-notifier.ts';
const WORK_SIGNALS = 'src/infra/jobs/signals/work-signals.ts';
const KEY_STATEMENTS = 'src/auth/api-key-auth.repository.ts';

/** Bugs that no test had caught at first. */
const ONCE_UNSEEN: readonly Mutant[] = [
  {
    name: 'order-end-without-fence',
    file: PURCHASE_JOBS,
    find: "WHERE p.fence = e.fence AND p.status = 'processing'",
    replace: "WHERE p.status = 'processing'",
    tests: ['test/orders-live/late-words.test.ts'],
  },
  {
    name: 'batch-fails-its-neighbors',
    file: 'src/infra/batcher.ts',
    find: 'if (entries.length === 1) return this.retryAlone(entries, failure);',
    replace: 'return this.giveUp(entries, failure.error);',
    tests: ['test/infra/batching/batcher.test.ts', 'test/orders-live/order-batches.test.ts'],
  },
  {
    name: 'charges-of-a-batch-with-one-balance',
    file: 'src/wallet/wallet-holds.repository.ts',
    find: 'w.posted + c.captured_later',
    replace: 'w.posted',
    tests: ['test/orders-live/order-batches.test.ts'],
  },
  {
    name: 'cancellation-end-without-fence',
    file: ORDER_JOBS,
    find: "'SELECT 1 FROM orders WHERE id = $1 AND fence = $2 FOR UPDATE'",
    replace: "'SELECT 1 FROM orders WHERE id = $1 AND $2::bigint > 0 FOR UPDATE'",
    also: [
      {
        file: ORDER_JOBS,
        find: "WHERE id = $1 AND fence = $2 AND status = 'canceling'\n",
        replace: "WHERE id = $1 AND $2::bigint > 0 AND status = 'canceling'\n",
      },
    ],
    tests: ['test/orders-live/late-words.test.ts'],
  },
  ...(
    [
      ['purchases', 'src/purchases/purchases.repository.ts'],
      ['esims', 'src/esims/esims.repository.ts'],
    ] as const
  ).map(([list, file]) => ({
    name: `${list}-list-of-everybody`,
    file,
    find: `.where('t.partner_id = :partnerId AND t.mode = :mode', { partnerId, mode })`,
    replace: `.where('t.mode = :mode', { mode })`,
    tests: ['test/e2e/support-lists.test.ts'],
  })),
  {
    name: 'events-list-of-everybody',
    file: 'src/events/events.repository.ts',
    find: `.where('t.partner_id = :partnerId', { partnerId })`,
    replace: `.where('true')`,
    tests: ['test/e2e/support-lists.test.ts'],
  },
  {
    name: 'feed-of-a-type-skips-to-its-end',
    file: 'src/events/event-feed.ts',
    find: 'hasMore ? items.at(-1)!.position : found.completeTo',
    replace: 'found.completeTo',
    tests: ['test/events/event-feed.test.ts'],
  },
  {
    name: 'lists-of-one-partner-without-a-bound',
    file: 'src/infra/http/caller-slots.ts',
    find: 'this.running < this.settings.most && caller.running < this.settings.perCaller',
    replace: 'this.running < this.settings.most',
    tests: ['test/infra/http/caller-slots.test.ts'],
  },
  {
    name: 'read-only-session-given-out-again',
    file: 'src/infra/database/database-client.ts',
    find: 'if (!UNUSABLE.test(error.code)) return;',
    replace: 'if (!/^08/.test(error.code)) return;',
    tests: ['test/infra/database/database-client.test.ts'],
  },
  {
    name: 'connections-as-old-as-a-lost-one-kept',
    file: 'src/infra/database/database-client.ts',
    find: 'this.contact.closeUnheard(this.silentSinceMs, error);',
    replace: '',
    tests: ['test/infra/database/database-client.test.ts'],
  },
  {
    name: 'session-with-the-settings-of-its-role',
    file: 'src/infra/database/database-client.ts',
    find: "DateStyle: 'ISO, MDY',",
    replace: '',
    tests: ['test/infra/database/database-client.test.ts'],
  },
  {
    name: 'id-ordered-by-language',
    file: 'migrations/1763700000003-create-catalog.ts',
    find: `id text COLLATE "C" NOT NULL`,
    replace: 'id text NOT NULL',
    build: true,
    tests: ['test/infra/database/collations.test.ts'],
  },
  {
    name: 'claim-of-a-disabled-endpoint',
    file: 'src/webhooks/worker/deliveries.repository.ts',
    find: 'w.enabled AND w.deleted_at IS NULL AS enabled',
    replace: 'w.deleted_at IS NULL AS enabled',
    tests: ['test/webhooks/deliveries-repository.test.ts'],
  },
  {
    name: 'outcome-of-an-older-fence',
    file: 'src/webhooks/worker/deliveries.repository.ts',
    find: ' AND d.started_fence = a.fence',
    replace: '',
    tests: ['test/webhooks/deliveries-repository.test.ts'],
  },
  {
    name: 'outcome-of-a-lost-endpoint',
    file: 'src/webhooks/worker/deliveries.repository.ts',
    // Either condition alone is sufficient.
    find: ' AND l.fence = a.fence AND l.owner = $20',
    replace: ' AND $20::text IS NOT NULL',
    tests: ['test/webhooks/leases.test.ts'],
  },
  {
    name: 'success-changes-no-blocked-endpoint',
    file: 'src/webhooks/worker/attempt-recorder.ts',
    find: "return outcome === 'delivered' && ",
    replace: 'return false && ',
    tests: ['test/webhooks/deliveries-repository.test.ts'],
  },
  {
    name: 'signature-kept-in-the-attempt-log',
    file: 'src/webhooks/worker/attempt-performer.ts',
    find: "'v1=[redacted]'",
    replace: "'$&'",
    tests: ['test/webhooks/delivery.test.ts'],
  },
  {
    name: 'redis-burst-plus-one',
    file: 'src/auth/redis-buckets.ts',
    find: '(now + burst * t - tat)',
    replace: '(now + (burst + 1) * t - tat)',
    tests: ['test/auth/redis-buckets.test.ts'],
  },
  {
    name: 'frozen-primary-kept',
    file: 'src/infra/redis-client.ts',
    find: 'failoverDetector: true',
    replace: 'failoverDetector: false',
    tests: ['test/redis/sentinel.test.ts'],
  },
  {
    name: 'second-error-of-redis-unheard',
    file: 'src/infra/redis-client.ts',
    find: "return stream.on('error', () => undefined);",
    replace: 'return stream;',
    tests: ['test/redis/tls.test.ts'],
  },
  {
    name: 'calls-never-counted',
    file: 'src/infra/http/http-metrics.ts',
    find: 'if (fresh.push(call) === 1) setImmediate(count);',
    replace: 'if (fresh.push(call) === 0) setImmediate(count);',
    tests: ['test/ops/metrics.test.ts'],
  },
  {
    name: 'delayed-job-never-added',
    file: WORKER_NOTIFIER,
    find: ".add('notify', { groups: [group] }, { delay, jobId, ...REMOVE_AT_END })",
    replace: '.getJob(jobId)',
    tests: ['test/e2e/delayed-jobs.test.ts'],
  },
  {
    name: 'notification-lost-while-armed',
    file: WORK_SIGNALS,
    find: 'void this.signals.add(due);',
    replace: 'if (this.pending.size === 1) void this.signals.add(due);',
    tests: ['test/infra/jobs/notifications.test.ts'],
  },
  {
    name: 'settle-does-nothing',
    file: WORK_SIGNALS,
    find: 'async settle(): Promise<void> {',
    replace: 'async settle(): Promise<void> {\n    return Promise.resolve();',
    tests: ['test/infra/jobs/notifications.test.ts'],
  },
  {
    name: 'stop-leaves-upstream-calls',
    file: 'src/infra/jobs/job-runner.ts',
    find: 'endsWithin(ended, drainMs)',
    replace: 'endsWithin(ended, 0 * drainMs)',
    tests: ['test/orders-live/late-words.test.ts', 'test/topups/late-words.test.ts'],
  },
  {
    name: 'keys-kept-23-hours',
    file: 'src/infra/idempotency/idempotency-keys.repository.ts',
    find: "interval '24 hours'",
    replace: "interval '23 hours'",
    tests: ['test/e2e/order-idempotency.test.ts'],
  },
  {
    name: 'success-after-a-give-up-forgotten',
    file: 'src/webhooks/worker/attempt-recorder.ts',
    find: '.toSorted((a, b) => a.endedAt - b.endedAt)',
    replace: '.toSorted((a, b) => b.endedAt - a.endedAt)',
    tests: ['test/webhooks/deliveries-repository.test.ts'],
  },
  {
    name: 'undocumented-field-in-an-answer',
    file: 'src/esims/api/esim.dto.ts',
    find: 'updated_at: esim.updatedAt.toISOString(),\n  };',
    replace: 'updated_at: esim.updatedAt.toISOString(),\n    ...{ sealed_install: esim.iccid },\n  };',
    tests: ['test/e2e/support-lists.test.ts', 'test/e2e/sandbox-esims.test.ts'],
  },
];

/** More bugs, across all features. */
const FURTHER: readonly Mutant[] = [
  {
    name: 'topup-end-without-fence',
    file: PURCHASE_JOBS,
    find: "WHERE p.fence = e.fence AND p.status = 'processing'",
    replace: "WHERE p.status = 'processing'",
    tests: ['test/topups/late-words.test.ts'],
  },
  {
    name: 'revoked-key-admitted',
    file: KEY_STATEMENTS,
    find: 'WHERE k.revoked_at IS NULL AND (',
    replace: 'WHERE (',
    tests: ['test/e2e/keys.test.ts'],
  },
  {
    name: 'address-of-a-key-ignored',
    file: KEY_STATEMENTS,
    find: 'a.address <<= ANY (k.allowed_cidrs)',
    replace: 'true',
    tests: ['test/e2e/keys.test.ts'],
  },
  {
    name: 'scope-of-a-key-ignored',
    file: 'src/auth/guards.ts',
    find: 'scopes: principal.scopes,\n      cure',
    replace: 'scopes: null,\n      cure',
    tests: ['test/auth/key-scopes.test.ts'],
  },
  {
    name: 'spend-limit-exceeded-by-the-last-purchase',
    file: 'src/auth/key-spending.ts',
    find: 'WHERE s.amount + EXCLUDED.amount <= (SELECT amount FROM key_limit)',
    replace: 'WHERE s.amount <= (SELECT amount FROM key_limit)',
    tests: ['test/auth/spend-limits.test.ts'],
  },
  {
    name: 'spend-limit-doubled-by-a-rotation',
    file: 'src/auth/key-spending.ts',
    find: 'coalesce(first_key_id, id)',
    replace: 'id',
    tests: ['test/auth/spend-limits.test.ts'],
  },
  {
    name: 'etag-never-matches',
    file: 'src/infra/http/envelope.interceptor.ts',
    find: 'opaque(candidate.trim()) === wanted',
    replace: 'candidate === etag.slice(1)',
    tests: ['test/e2e/catalog.test.ts'],
  },
  {
    name: 'hold-beyond-the-balance',
    file: 'src/wallet/wallet-holds.repository.ts',
    find: 'AND posted - held >= $3::bigint',
    replace: 'AND posted >= $3::bigint',
    tests: ['test/orders-live/wallet-and-orders.test.ts'],
  },
  {
    name: 'key-with-another-request-replayed',
    file: 'src/infra/idempotency/idempotent-executor.ts',
    find: 'if (!stored.fingerprint.equals(fingerprint))',
    replace: 'if (stored.fingerprint.length !== fingerprint.length)',
    tests: ['test/e2e/order-idempotency.test.ts'],
  },
  {
    name: 'feed-repeats-the-last-event',
    file: 'src/events/events.repository.ts',
    find: 'AND position > $3 AND',
    replace: 'AND position >= $3 AND',
    tests: ['test/events/event-feed.test.ts'],
  },
  {
    name: 'replay-of-the-future',
    file: 'src/webhooks/replay-events.ts',
    find: 'command.until !== null && command.until < now ? command.until : now',
    replace: 'command.until ?? now',
    tests: ['test/webhooks/replay.test.ts'],
  },
  {
    name: 'signature-without-its-time',
    file: 'src/webhooks/signature.ts',
    find: '.update(`${timestamp}.`).update(body)',
    replace: '.update(timestamp.slice(0, 0)).update(body)',
    tests: ['test/webhooks/signature.test.ts'],
  },
  {
    name: 'old-signature-accepted',
    file: 'src/webhooks/signature.ts',
    find: 'Math.abs(now - Number(parsed.timestamp)) <= tolerance',
    replace: 'Number(parsed.timestamp) - now <= tolerance',
    tests: ['test/webhooks/signature.test.ts'],
  },
  {
    name: 'cloud-metadata-reachable',
    file: 'src/webhooks/target-policy.ts',
    find: "  '169.254.0.0/16',\n",
    replace: '',
    tests: ['test/webhooks/target-policy.test.ts'],
  },
  {
    name: 'burst-plus-one',
    file: 'src/auth/rate-limit.ts',
    find: 'return { burst: limit.burst,',
    replace: 'return { burst: limit.burst + 1,',
    tests: ['test/e2e/rate-limit.test.ts'],
  },
  {
    name: 'wrong-wallet-not-reported',
    file: 'src/reconciliation/books/ledger-checks.ts',
    find: 'HAVING w.held <> coalesce(sum(h.amount), 0)',
    replace: 'HAVING w.held < coalesce(sum(h.amount), 0)',
    build: true,
    tests: ['test/reconciliation/books.test.ts'],
  },
  {
    name: 'threshold-too-early',
    file: 'src/esims/usage-report.ts',
    find: 'if (thresholdsCrossed.includes(level)) return true;',
    replace: 'if (thresholdsCrossed.length > 0) return true;',
    tests: ['test/esim-sync/reading-reducer.test.ts'],
  },
  {
    name: 'expired-esim-alive-again',
    file: 'src/esims/usage-report.ts',
    find: "if (esim.status === 'expired') return 'expired';",
    replace: '',
    tests: ['test/esim-sync/reading-reducer.test.ts'],
  },
  {
    name: 'ended-esim-polled',
    file: 'src/esim-sync/poll-plan.ts',
    find: "case 'canceled':\n      return null;",
    replace: "case 'canceled':\n      return SPENT_MS;",
    tests: ['test/esim-sync/poll-plan.test.ts'],
  },
  {
    name: 'cursor-of-another-list',
    file: 'src/infra/crypto/cursor-codec.ts',
    find: '.update(canonicalJson(scope)).update',
    replace: '.update',
    tests: ['test/infra/crypto/secrets.test.ts'],
  },
  {
    name: 'automatic-top-up-beside-an-open-one',
    file: 'src/esims/auto-topups.repository.ts',
    find: "AND t.status IN ('pending', 'processing')",
    replace: "AND t.status IN ('none')",
    tests: ['test/topups/auto-topup-money.test.ts'],
  },
  {
    name: 'automatic-top-up-of-an-ended-data-cycle',
    file: 'src/topups/worker/place-auto-topups.ts',
    find: '!isCrossed(rule, esim) || ',
    replace: '',
    tests: ['test/topups/auto-topup-money.test.ts'],
  },
  {
    name: 'automatic-top-up-without-a-maximum',
    file: 'src/topups/worker/place-auto-topups.ts',
    find: 'used >= rule.maxTimes',
    replace: 'false',
    tests: ['test/topups/auto-topups.test.ts'],
  },
  {
    name: 'sealed-secret-in-another-row',
    file: 'src/infra/crypto/secret-box.ts',
    find: '.setAAD(Buffer.from(owner));\n    const ciphertext',
    replace: ';\n    const ciphertext',
    also: [
      {
        file: 'src/infra/crypto/secret-box.ts',
        find: '.setAAD(Buffer.from(owner))\n      .setAuthTag',
        replace: '.setAuthTag',
      },
    ],
    tests: ['test/infra/crypto/secrets.test.ts'],
  },
  {
    name: 'suspension-not-audited',
    file: 'src/partners/partners.service.ts',
    find: 'await this.audit.record(tx, { ...by, action, partnerId: id, subjectId: id, details });',
    replace: 'void [by, action, details];',
    tests: ['test/partners/partners-admin.test.ts'],
  },
  {
    name: 'late-call-leaves-in-anothers-slot',
    file: 'src/providers/http/provider-rate-limiter.ts',
    find: 'earliestLocal(row.slot_ms) + latenessMs',
    replace: 'earliestLocal(row.slot_ms) + latenessMs + 1_000',
    tests: ['test/providers/provider-rate-limiter.test.ts'],
  },
  {
    name: 'retry-slot-no-longer',
    file: 'src/providers/http/provider-rate-limiter.ts',
    find: 'this.slotMs * this.slowerNow(askedAt) + extraMs;',
    replace: 'this.slotMs * this.slowerNow(askedAt);',
    tests: ['test/providers/provider-rate-limiter.test.ts'],
  },
  {
    name: 'refused-pace-kept',
    file: 'src/providers/http/provider-rate-limiter.ts',
    find: 'this.slotMs * this.slowerNow(askedAt) + extraMs;',
    replace: 'this.slotMs + extraMs;',
    tests: ['test/providers/zendit-orders.test.ts'],
  },
  {
    name: 'cancellation-ignores-approved-refunds',
    file: 'src/orders/cancel-order.ts',
    find: 'sum + refundableOf(order, esim, refunds)',
    replace: 'sum + order.unitPriceAmount',
    tests: ['test/refunds/refund-requests.test.ts'],
  },
  {
    name: 'canceled-esim-refunded-again',
    file: 'src/orders/order.ts',
    find: "if (esim.status === 'canceled' && esim.revokedAt === null && byCancellation > 0) return 0;",
    replace: '',
    tests: ['test/refunds/refund-requests.test.ts'],
  },
  {
    name: 'approval-without-the-orders-lock',
    file: 'src/refunds/decide-refund.ts',
    find: 'const order = await this.orders.findByIdForUpdate(tx, orderId);',
    replace: 'const order = await this.orders.findById(orderId);',
    tests: ['test/refunds/refund-requests.test.ts'],
  },
  {
    name: 'refund-not-returned-to-the-key',
    file: 'src/refunds/decide-refund.ts',
    find: 'returned: returnedSpending(order, refund),',
    replace: 'returned: returnedSpending(order, 0),',
    tests: ['test/refunds/refund-requests.test.ts'],
  },
  {
    name: 'price-rounded-down',
    file: 'src/catalog/price-list.ts',
    find: '(exact + divisor - 1n) / divisor',
    replace: 'exact / divisor',
    tests: ['test/catalog/price-with-margin.test.ts'],
  },
  {
    name: 'database-of-a-dead-parent-kept',
    file: 'src/embedded/postgres/privileges.ts',
    find: 'test "$PPID" = "$0" || exit 1; exec "$@"',
    replace: 'exec "$@"',
    tests: ['test/embedded/postgres/recovery.test.ts'],
  },
  {
    name: 'install-link-path-in-the-log',
    file: 'src/apps/install.app.ts',
    find: "toAccessLogLine({ ...call, path: '-' })",
    replace: 'toAccessLogLine(call)',
    tests: ['test/install/secrecy.test.ts'],
  },
  {
    name: 'access-code-tries-uncounted-at-once',
    file: 'src/install-links/page/install-page.repository.ts',
    find: '  WHERE id = $1 AND coalesce(locked_until <= statement_timestamp(), true)',
    replace: '  WHERE id = $1',
    tests: ['test/install/page.test.ts'],
  },
  {
    name: 'expired-install-link-opens',
    file: 'src/install-links/page/install-page.repository.ts',
    find: 'WHERE l.token_hash = $1 AND l.expires_at > statement_timestamp()',
    replace: 'WHERE l.token_hash = $1',
    tests: ['test/install/page.test.ts'],
  },
  {
    name: 'install-code-in-a-preview',
    file: 'src/install-links/page/install-page.controller.ts',
    find: "const showsCode = byPerson && (state === 'new'",
    replace: "const showsCode = (state === 'new'",
    tests: ['test/install/page.test.ts'],
  },
  {
    name: 'install-pass-of-another-link',
    file: 'src/install-links/page/access-pass.ts',
    find: 'return `install-pass ${linkId}`;',
    replace: 'return `install-pass ${linkId.slice(0, 4)}`;',
    tests: ['test/install/page.test.ts'],
  },
  {
    name: 'ended-esim-shown-while-the-worker-is-down',
    file: 'src/install-links/page/page-state.ts',
    find: "if (end && end <= now) return 'ended';",
    replace: '',
    tests: ['test/install/page.test.ts'],
  },
];

export const MUTANTS: readonly Mutant[] = [...ONCE_UNSEEN, ...FURTHER];
