import { Injectable } from '@nestjs/common';
import { AppError, type Problem, PROBLEM_CONTENT_TYPE, toProblem } from '../../common/errors/index.js';
import { isLockTimeout, Transactions, withSavepoint, type Tx } from '../database/index.js';
import type { Answer, IdempotentCall, RenderedAnswer } from './idempotent-call.js';
import { IdempotencyStore, type StoredAnswer } from './idempotency.store.js';
import { inProgress, KeyTurns, WAIT_LIMIT_MS } from './key-turns.js';

const JSON_CONTENT_TYPE = 'application/json; charset=utf-8';
const STATUS_NOT_FINAL = new Set([401, 403, 408, 429]);

/** A call whose key is present. */
type KeyedCall = IdempotentCall & { key: string; waitedMs: number };

/**
 * Runs a POST exactly once per key: claim, business rows, events and the stored answer are one transaction, so
 * there is nothing to recover and nothing to do twice (D16). `work` must not call anything outside the database.
 */
@Injectable()
export class OnceOnly {
  private readonly turns = new KeyTurns();

  constructor(
    private readonly transactions: Transactions,
    private readonly store: IdempotencyStore,
  ) {}

  /**
   * Executes `work`, or replays the answer of the first call with this key.
   * @throws AppError `idempotency_key_reused`, `idempotency_in_progress`; whatever is not final passes through
   * and leaves the key free.
   */
  async run(call: IdempotentCall, work: (tx: Tx) => Promise<Answer>): Promise<RenderedAnswer> {
    if (call.key === null) {
      return this.transactions.run(async (tx) => renderAnswer(await work(tx), call.requestId));
    }
    const keyed = { ...call, key: call.key };
    return this.turns.take(`${call.scope} ${call.key}`, (waitedMs) =>
      this.transactions.run((tx) => this.claimAndWork(tx, { ...keyed, waitedMs }, work)),
    );
  }

  /**
   * As `run`, for work that needs what somebody outside the database says: `ask` is called before the transaction, and
   * not at all for a call whose answer is stored already.
   */
  async runAfter<T>(
    call: IdempotentCall,
    ask: () => Promise<T>,
    work: (tx: Tx, said: T) => Promise<Answer>,
  ): Promise<RenderedAnswer> {
    const stored = await this.findStored(call);
    if (stored) return replayOf(stored, call);
    const said = await ask();
    return this.run(call, (tx) => work(tx, said));
  }

  private async findStored({ scope, key }: IdempotentCall): Promise<StoredAnswer | null> {
    if (key === null) return null;
    return this.transactions.run((tx) => this.store.find(tx.manager, scope, key));
  }

  private async claimAndWork(
    tx: Tx,
    call: KeyedCall,
    work: (tx: Tx) => Promise<Answer>,
  ): Promise<RenderedAnswer> {
    if (!(await this.claim(tx, call))) return this.replay(tx, call);
    const { fresh, stored } = await this.attempt(tx, call, work);
    await this.store.complete(tx.manager, call, stored);
    return fresh;
  }

  /** Another process may be at the same key: past the lock timeout its caller is told so (D18). */
  private async claim(tx: Tx, call: KeyedCall): Promise<boolean> {
    try {
      // A duplicate waits five seconds in all, here and there: its connection is others' meanwhile.
      if (call.waitedMs === 0) return await this.store.claim(tx.manager, call);
      await this.store.limitLockWait(tx.manager, WAIT_LIMIT_MS - call.waitedMs);
      const claimed = await this.store.claim(tx.manager, call);
      if (claimed) await this.store.limitLockWait(tx.manager, WAIT_LIMIT_MS);
      return claimed;
    } catch (error) {
      if (isLockTimeout(error)) throw inProgress();
      throw error;
    }
  }

  private async attempt(
    tx: Tx,
    call: KeyedCall,
    work: (tx: Tx) => Promise<Answer>,
  ): Promise<{ fresh: RenderedAnswer; stored: RenderedAnswer }> {
    try {
      const answer = await withSavepoint(tx, work);
      const fresh = renderAnswer(answer, call.requestId);
      return {
        fresh,
        stored: answer.secretFields ? renderAnswer(withoutSecrets(answer), call.requestId) : fresh,
      };
    } catch (error) {
      if (!isFinalRefusal(error)) throw error;
      const refusal = renderRefusal(error, call.requestId);
      return { fresh: refusal, stored: refusal };
    }
  }

  private async replay(tx: Tx, call: KeyedCall): Promise<RenderedAnswer> {
    const stored = await this.store.find(tx.manager, call.scope, call.key);
    // Gone between the two statements: the purge job took it at the very end of its 24 h.
    if (!stored) throw inProgress();
    return replayOf(stored, call);
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

function renderAnswer(answer: Answer, requestId: string): RenderedAnswer {
  return {
    status: answer.status,
    contentType: JSON_CONTENT_TYPE,
    location: answer.location ?? null,
    body: JSON.stringify({ request_id: requestId, data: answer.data }),
    requestId,
    replayed: false,
    errorCode: null,
  };
}

function renderRefusal(error: AppError, requestId: string): RenderedAnswer {
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

function withoutSecrets(answer: Answer): Answer {
  const data = { ...(answer.data as Record<string, unknown>) };
  for (const field of answer.secretFields ?? []) data[field] = null;
  return { ...answer, data };
}

/** @throws AppError `idempotency_key_reused` (D17) */
function replayOf(stored: StoredAnswer, { fingerprint }: IdempotentCall): RenderedAnswer {
  if (!stored.fingerprint.equals(fingerprint)) throw new AppError('idempotency_key_reused');
  const refusal = stored.contentType === PROBLEM_CONTENT_TYPE ? (JSON.parse(stored.body) as Problem) : null;
  return { ...stored, replayed: true, errorCode: refusal?.code ?? null };
}
