import type { EntityManager, SelectQueryBuilder } from 'typeorm';
import { AppError, NotFound } from '../common/errors/index.js';
import { MODES, type Mode } from '../common/mode.js';
import type { Page } from '../common/page.js';
import type { PartnerScope, ReadScope, TenantScope } from '../common/tenant-scope.js';
import {
  columnsOf,
  type KeysetPages,
  type ListOptions,
  modeIn,
  type PreparedStatement,
  rowToEntity,
  selectList,
  sql,
  type SqlParameter,
  type Tx,
  violatedUniqueConstraint,
} from '../infra/database/index.js';
import { freshReference } from '../providers/index.js';
import { insertionByMode } from './placement-record.js';
import type { Purchase, PurchaseFilters, PurchaseKind } from './purchase.js';

/** Properties of every purchase that are set at acceptance. */
const ACCEPTED = [
  'id',
  'partnerId',
  'mode',
  'packageId',
  'currency',
  'reference',
  'metadata',
  'provider',
  'providerReference',
  'upstreamPackageId',
  'unitCostMicros',
  'unitCostCurrency',
  'acceptedRequestId',
  'limitedKeyId',
  'traceparent',
] as const satisfies readonly (keyof Purchase)[];

/** SQL of a new row's state. */
export interface NewState {
  readonly columns: string;
  /** @param placedSince SQL for the time since which the purchase may have been placed */
  readonly values: (placedSince: string) => string;
}

/** Waits for a worker. */
const DUE: NewState = {
  columns: 'status, next_attempt_at, upstream_placed_at',
  values: (placedSince) => `'pending', now(), ${placedSince}`,
};

/** A purchase's values at acceptance; `Own` are the properties that only this kind has. */
export type NewPurchase<P extends Purchase, Own extends keyof P> = Pick<P, Own | (typeof ACCEPTED)[number]>;

/** SQL of `orders` or `topups` for the APIs; `PurchaseJobsRepository` has the worker's. */
export abstract class PurchasesRepository<
  P extends Purchase,
  Own extends keyof P & string,
  Filters extends PurchaseFilters,
> {
  private readonly insertion: Readonly<Record<Mode, PreparedStatement>>;
  protected readonly accepted: readonly (keyof P & string)[];

  protected constructor(
    protected readonly manager: EntityManager,
    private readonly pages: KeysetPages,
    private readonly kind: PurchaseKind<P>,
    own: readonly Own[],
  ) {
    this.accepted = [...ACCEPTED, ...own];
    this.insertion = this.insertionOf(DUE);
  }

  /**
   * Inserts a new purchase, due at once; columns that it omits get their defaults. Written by hand, because TypeORM's
   * insert builder costs more than the statement.
   * @throws AppError `reference_taken`
   */
  async insert(tx: Tx, purchase: NewPurchase<P, Own>): Promise<P> {
    const parameters = this.parametersOf(purchase);
    // Used when the derived provider reference belongs to an earlier purchase, because its key is reused.
    if (purchase.mode === 'live') parameters.push(freshReference(this.kind.name));
    return this.insertBy(tx, this.insertion[purchase.mode], parameters);
  }

  protected parametersOf(purchase: NewPurchase<P, Own>): SqlParameter[] {
    const values = purchase as unknown as Readonly<Record<string, SqlParameter>>;
    return this.accepted.map((property) => values[property]!);
  }

  protected async insertBy(
    tx: Tx,
    statement: PreparedStatement,
    parameters: readonly SqlParameter[],
  ): Promise<P> {
    try {
      const { rows } = await sql(tx.manager, statement, parameters);
      return rowToEntity(this.manager, this.kind.entity, rows[0]!);
    } catch (error) {
      const { noun, table } = this.kind;
      if (violatedUniqueConstraint(error) === `${table}_reference`)
        throw new AppError('reference_taken', {
          detail: `Another ${noun} has this reference. GET /v1/${table}?reference= shows it. To buy again, use another reference.`,
        });
      throw error;
    }
  }

  /** A purchase of one partner and mode; anything else is the same 404 (D14). @throws NotFound */
  async getById(
    { partnerId, mode }: ReadScope,
    id: string,
    manager: EntityManager = this.manager,
  ): Promise<P> {
    const found = await this.findOne(manager, { partnerId, mode: modeIn(mode), id });
    if (!found) throw new NotFound();
    return found;
  }

  /** Any partner's purchase in any mode, for support. */
  async findById(id: string, manager: EntityManager = this.manager): Promise<P | null> {
    return this.findOne(manager, { id });
  }

  /**
   * The purchases with the partner's own reference, newest first; null as scope: of all partners in both modes.
   */
  async listByReference(reference: string, scope: ReadScope | null, limit: number): Promise<readonly P[]> {
    const query = this.manager
      .createQueryBuilder(this.kind.entity, 't')
      .where('t.reference = :reference', { reference });
    if (scope !== null) query.andWhere({ partnerId: scope.partnerId, mode: modeIn(scope.mode) });
    return query.orderBy('t.created_at', 'DESC').addOrderBy('t.id', 'DESC').limit(limit).getMany();
  }

  /** Like `findById`, with the row locked for `tx`. */
  async findByIdForUpdate(tx: Tx, id: string): Promise<P | null> {
    return this.findOne(tx.manager, { id }, true);
  }

  /** The purchase with a provider reference, of any partner. @throws Error when there is none */
  async getByProviderReference(tx: Tx, providerReference: string): Promise<P> {
    const found = await this.findOne(tx.manager, { providerReference });
    if (!found) throw new Error(`no ${this.kind.noun} has the provider reference ${providerReference}`);
    return found;
  }

  async list(
    { partnerId, mode }: PartnerScope,
    filters: Filters,
    options: ListOptions,
    manager: EntityManager = this.manager,
  ): Promise<Page<P>> {
    const modes = mode === undefined ? MODES : [mode];
    const queries = modes.map((each) => this.matching({ partnerId, mode: each }, filters, manager));
    return this.pages.listMerged(queries, options);
  }

  /** Adds the filters that only this kind of purchase has. */
  protected abstract narrow(query: SelectQueryBuilder<P>, filters: Filters): void;

  protected findOne(manager: EntityManager, where: object, isLocked = false): Promise<P | null> {
    const lock = isLocked ? { lock: { mode: 'pessimistic_write' } as const } : {};
    return manager.findOne(this.kind.entity, { where: where, ...lock });
  }

  private matching(
    { partnerId, mode }: TenantScope,
    filters: Filters,
    manager: EntityManager,
  ): SelectQueryBuilder<P> {
    const query = manager
      .createQueryBuilder(this.kind.entity, 't')
      .where('t.partner_id = :partnerId AND t.mode = :mode', { partnerId, mode });
    if (filters.status !== undefined) query.andWhere('t.status = :status', { status: filters.status });
    if (filters.reference !== undefined) query.andWhere('t.reference = :ref', { ref: filters.reference });
    this.narrow(query, filters);
    return query;
  }

  /** SQL that inserts a purchase in this state, by mode; parameters of the state follow those of the purchase. */
  protected insertionOf(state: NewState): Readonly<Record<Mode, PreparedStatement>> {
    const { table, entity } = this.kind;
    const accepted: readonly string[] = this.accepted;
    const parameterOf = (property: string): string => `$${accepted.indexOf(property) + 1}`;
    const names = columnsOf(this.manager, entity, this.accepted).map(({ name }) => name);
    const row = {
      provider: parameterOf('provider'),
      reference: parameterOf('providerReference'),
      otherReference: `$${accepted.length + 1}`,
      ...(accepted.includes('esimId') ? { esimId: parameterOf('esimId') } : {}),
    };
    return insertionByMode(this.kind, row, ({ reference, placedSince }) => {
      const values = accepted.map((property) =>
        property === 'providerReference' ? reference : parameterOf(property),
      );
      return `INSERT INTO ${table} AS p (${names.join(', ')}, ${state.columns})
       VALUES (${values.join(', ')}, ${state.values(placedSince)})
       RETURNING ${selectList(this.manager, entity, 'p')}`;
    });
  }
}
