import { Global, Injectable, Module } from '@nestjs/common';
import { AppError, type Problem, PROBLEM_CONTENT_TYPE, toProblem } from '../../common/errors/index.js';
import { isLockTimeout, limitLockWait, Transactions, type Tx, withSavepoint } from '../database/index.js';
import type { IdempotencyKey, IdempotentResponse, RenderedResponse } from './idempotency-key.js';
import { IdempotencyKeysRepository, type StoredResponse } from './idempotency-keys.repository.js';
import { inProgress, KeyedMutex, WAIT_LIMIT_MS } from './keyed-mutex.js';
import { WriteSlots } from './write-slots.js';

const JSON_CONTENT_TYPE = 'application/json; charset=utf-8';
const STATUS_NOT_FINAL = new Set([401, 403, 408, 429]);

const nothing = (): Promise<void> => Promise.resolve();

/** A key from the request. */
type PresentKey = IdempotencyKey & { key: string; waitedMs: number };

/**
 * Runs a POST exactly once per key: claim, business rows, events and stored response are one transaction, so there is
 * nothing to recover and nothing to repeat (D16). `work` must not call anything outside the database.
 */
@Injectable()
export class IdempotentExecutor {
  private readonly mutex = new KeyedMutex();

  constructor(
    private readonly transactions: Transactions,
    private readonly store: IdempotencyKeysRepository,
    private readonly slots: WriteSlots,
  ) {}

  /**
   * Executes `work`, or replays the response to the first call with this key.
   * @throws AppError `idempotency_key_reused`, `idempotency_in_progress`, and `rate_limited` or `service_unavailable`
   * when there are too many concurrent writes; errors that are not final pass through and leave the key free
   */
  async execute(
    key: IdempotencyKey,
    work: (tx: Tx) => Promise<IdempotentResponse>,
  ): Promise<RenderedResponse> {
    return this.executeReading(key, nothing, work);
  }

  /**
   * Like `execute`, for work that begins by reading: `read` is sent together with the claim, because a round trip costs
   * more than an unnecessary read. It must neither write nor refuse anything.
   */
  async executeReading<T>(
    key: IdempotencyKey,
    read: (tx: Tx) => Promise<T>,
    work: (tx: Tx, found: T) => Promise<IdempotentResponse>,
  ): Promise<RenderedResponse> {
    const { key: value, scope, slotOwner } = key;
    if (value === null)
      return this.write(slotOwner, async (tx) => render(await work(tx, await read(tx)), key));
    return this.mutex.runExclusive(`${scope} ${value}`, (waitedMs) =>
      this.write(slotOwner, async (tx) => {
        const claimed = { ...key, key: value, waitedMs };
        const [isClaimed, found] = await Promise.all([this.claim(tx, claimed), read(tx)]);
        if (!isClaimed) return this.replay(tx, claimed);
        return this.workOnce(tx, claimed, (inner) => work(inner, found));
      }),
    );
  }

  /**
   * Like `execute`, for work that needs data from outside the database: `ask` runs before the transaction, and not at
   * all when the call's response is already stored.
   */
  async executeAfter<T>(
    key: IdempotencyKey,
    ask: () => Promise<T>,
    work: (tx: Tx, said: T) => Promise<IdempotentResponse>,
  ): Promise<RenderedResponse> {
    const stored = await this.findStored(key);
    if (stored) return replayOf(stored, key);
    const said = await ask();
    return this.execute(key, (tx) => work(tx, said));
  }

  private write<T>(slotOwner: string, work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.slots.write(slotOwner, () => this.transactions.run(work));
  }

  private async findStored({ scope, key }: IdempotencyKey): Promise<StoredResponse | null> {
    if (key === null) return null;
    return this.transactions.run((tx) => this.store.find(tx.manager, scope, key));
  }

  private async workOnce(
    tx: Tx,
    key: PresentKey,
    work: (tx: Tx) => Promise<IdempotentResponse>,
  ): Promise<RenderedResponse> {
    const { fresh, stored } = await this.attempt(tx, key, work);
    this.store.complete(tx, key, stored);
    return fresh;
  }

  /** Another process may be using the same key. After the lock timeout, this call is refused (D18). */
  private async claim(tx: Tx, key: PresentKey): Promise<boolean> {
    try {
      // A duplicate waits at most five seconds in total, in the mutex and for the lock, because it holds a connection
      // that others need.
      if (key.waitedMs === 0) return await this.store.claim(tx.manager, key);
      limitLockWait(tx, WAIT_LIMIT_MS - key.waitedMs);
      const claimed = await this.store.claim(tx.manager, key);
      if (claimed) limitLockWait(tx, WAIT_LIMIT_MS);
      return claimed;
    } catch (error) {
      if (isLockTimeout(error)) throw inProgress();
      throw error;
    }
  }

  private async attempt(
    tx: Tx,
    key: PresentKey,
    work: (tx: Tx) => Promise<IdempotentResponse>,
  ): Promise<{ fresh: RenderedResponse; stored: RenderedResponse }> {
    try {
      const response = await withSavepoint(tx, work);
      const fresh = render(response, key);
      return { fresh, stored: response.secretFields ? render(withoutSecrets(response), key) : fresh };
    } catch (error) {
      if (!isFinalRefusal(error)) throw error;
      const refusal = renderRefusal(error, key.requestId);
      return { fresh: refusal, stored: refusal };
    }
  }

  private async replay(tx: Tx, key: PresentKey): Promise<RenderedResponse> {
    const stored = await this.store.find(tx.manager, key.scope, key.key);
    // The purge deleted it between the two statements, at the very end of its 24 h.
    if (!stored) throw inProgress();
    return replayOf(stored, key);
  }
}

function isFinalRefusal(error: unknown): error is AppError {
  return (
    error instanceof AppError &&
    error.status < 500 &&
    error.code !== 'validation_failed' &&
    error.code !== 'idempotency_in_progress' &&
    !STATUS_NOT_FINAL.has(error.status)
  );
}

function render(
  response: IdempotentResponse,
  { requestId, successStatus }: IdempotencyKey,
): RenderedResponse {
  return {
    status: successStatus,
    contentType: JSON_CONTENT_TYPE,
    location: response.location ?? null,
    body: JSON.stringify({ request_id: requestId, data: response.data }),
    requestId,
    replayed: false,
    errorCode: null,
  };
}

function renderRefusal(error: AppError, requestId: string): RenderedResponse {
  return {
    status: error.status,
    contentType: PROBLEM_CONTENT_TYPE,
    location: null,
    body: JSON.stringify(toProblem(error, requestId)),
    requestId,
    replayed: false,
    errorCode: error.code,
  };
}

function withoutSecrets(response: IdempotentResponse): IdempotentResponse {
  const data = { ...(response.data as Record<string, unknown>) };
  for (const field of response.secretFields ?? []) data[field] = null;
  return { ...response, data };
}

/** @throws AppError `idempotency_key_reused` (D17) */
function replayOf(stored: StoredResponse, { fingerprint }: IdempotencyKey): RenderedResponse {
  if (!stored.fingerprint.equals(fingerprint)) throw new AppError('idempotency_key_reused');
  const refusal = stored.contentType === PROBLEM_CONTENT_TYPE ? (JSON.parse(stored.body) as Problem) : null;
  return { ...stored, replayed: true, errorCode: refusal?.code ?? null };
}

@Global()
@Module({
  providers: [IdempotencyKeysRepository, IdempotentExecutor, WriteSlots],
  exports: [IdempotencyKeysRepository, IdempotentExecutor],
})
export class IdempotencyModule {}
