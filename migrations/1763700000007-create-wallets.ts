import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The prepaid wallet with its append-only ledger (D27), the sources of live packages, and the cost columns of live
 * orders. Only Live writes the wallet's tables (D26). Orders and top-ups are referenced without a foreign key, because
 * the ledger outlives them.
 */
export class CreateWallets1763700000007 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(CREATE_WALLETS);
    await runner.query(CREATE_LEDGER);
    await runner.query(GUARD_LEDGER);
    await runner.query(CREATE_SOURCES);
    await runner.query(WIDEN_ORDERS);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP INDEX orders_open;
      ALTER TABLE orders
        DROP COLUMN upstream_package_id, DROP COLUMN unit_cost_micros, DROP COLUMN unit_cost_currency,
        DROP COLUMN upstream_placed_at, DROP COLUMN cancel_requested_at, DROP COLUMN last_error;
      DROP TABLE package_sources, wallet_low_signals, wallet_holds, ledger_entries, ledger_transactions, wallets;
      DROP FUNCTION ledger_is_append_only, ledger_transaction_balances;
    `);
  }
}

const CREATE_WALLETS = `
  CREATE TABLE wallets (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    partner_id text COLLATE "C" NOT NULL REFERENCES partners (id),
    currency text COLLATE "C" NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    -- what the partner has, holds included; below 2^53, so that every reader can read it
    posted bigint NOT NULL DEFAULT 0 CHECK (posted <= 9000000000000000),
    held bigint NOT NULL DEFAULT 0,
    -- below this available amount the wallet counts as low; null: never
    low_balance_amount bigint CHECK (low_balance_amount >= 0),
    low_since timestamptz,
    -- the ledger's clock: every transaction of the wallet is later than the one before
    last_posted_at timestamptz NOT NULL DEFAULT '-infinity',
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT wallets_owner UNIQUE (partner_id, currency),
    CONSTRAINT wallets_identity UNIQUE (id, partner_id, currency),
    CONSTRAINT wallets_held CHECK (held >= 0),
    CONSTRAINT wallets_available CHECK (posted - held >= 0)
  ) WITH (fillfactor = 50);

  CREATE TABLE wallet_holds (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    wallet_id bigint NOT NULL REFERENCES wallets (id),
    order_id text COLLATE "C" CONSTRAINT wallet_holds_order UNIQUE,
    topup_id text COLLATE "C" CONSTRAINT wallet_holds_topup UNIQUE,
    -- the partner's own id of the order or top-up, for its statement
    reference text COLLATE "C",
    amount bigint NOT NULL CHECK (amount > 0),
    captured bigint NOT NULL DEFAULT 0,
    refunded bigint NOT NULL DEFAULT 0,
    status text COLLATE "C" NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'captured', 'released')),
    created_at timestamptz NOT NULL DEFAULT now(),
    resolved_at timestamptz,
    CHECK (num_nonnulls(order_id, topup_id) = 1),
    CONSTRAINT wallet_holds_captured CHECK (captured BETWEEN 0 AND amount),
    CONSTRAINT wallet_holds_refunded CHECK (refunded BETWEEN 0 AND captured),
    CHECK ((status = 'captured') = (captured > 0)),
    CHECK ((status = 'active') = (resolved_at IS NULL))
  ) WITH (fillfactor = 80);
  CREATE INDEX wallet_holds_active ON wallet_holds (wallet_id) WHERE status = 'active';

  -- One row each time that a wallet becomes low; whoever alerts reads it.
  CREATE TABLE wallet_low_signals (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    wallet_id bigint NOT NULL REFERENCES wallets (id),
    available bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE INDEX wallet_low_signals_list ON wallet_low_signals (created_at, id);
`;

const CREATE_LEDGER = `
  CREATE TABLE ledger_transactions (
    id text COLLATE "C" PRIMARY KEY,
    wallet_id bigint NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    currency text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL CHECK (type IN ('charge', 'refund', 'deposit', 'adjustment')),
    -- the partner's side, signed; the sum of the entries of the wallet's account
    amount bigint NOT NULL CHECK (amount <> 0),
    balance_after bigint NOT NULL CHECK (balance_after >= 0),
    order_id text COLLATE "C",
    topup_id text COLLATE "C",
    reference text COLLATE "C",
    note text COLLATE "C",
    actor text COLLATE "C",
    created_at timestamptz NOT NULL,
    FOREIGN KEY (wallet_id, partner_id, currency) REFERENCES wallets (id, partner_id, currency),
    CHECK (CASE type WHEN 'charge' THEN amount < 0 WHEN 'adjustment' THEN true ELSE amount > 0 END),
    CHECK (CASE WHEN type IN ('charge', 'refund') THEN num_nonnulls(order_id, topup_id) = 1
                ELSE num_nonnulls(order_id, topup_id) = 0 AND reference IS NOT NULL AND actor IS NOT NULL END)
  );
  CREATE INDEX ledger_transactions_list ON ledger_transactions (partner_id, created_at DESC, id DESC);
  CREATE UNIQUE INDEX ledger_transactions_reference ON ledger_transactions (partner_id, reference)
    WHERE type IN ('deposit', 'adjustment');
  CREATE UNIQUE INDEX ledger_transactions_order_charge ON ledger_transactions (order_id) WHERE type = 'charge';
  CREATE UNIQUE INDEX ledger_transactions_topup_charge ON ledger_transactions (topup_id) WHERE type = 'charge';

  CREATE TABLE ledger_entries (
    transaction_id text COLLATE "C" NOT NULL REFERENCES ledger_transactions (id),
    seq smallint NOT NULL,
    -- partner_wallet:<wallet id>, revenue:<currency>, cash:<currency>, adjustment:<currency>
    account text COLLATE "C" NOT NULL CHECK (account ~ '^(partner_wallet:[0-9]+|(revenue|cash|adjustment):[A-Z]{3})$'),
    amount bigint NOT NULL CHECK (amount <> 0),
    currency text COLLATE "C" NOT NULL,
    PRIMARY KEY (transaction_id, seq)
  );
`;

/**
 * Enforces double-entry bookkeeping and the append-only rule for every writer. Checked at commit, because entries are
 * inserted after their transaction's row.
 */
const GUARD_LEDGER = `
  CREATE FUNCTION ledger_transaction_balances() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    subject text := CASE TG_TABLE_NAME WHEN 'ledger_entries' THEN to_jsonb(NEW) ->> 'transaction_id'
                                       ELSE to_jsonb(NEW) ->> 'id' END;
    wanted ledger_transactions;
    total numeric;
    own numeric;
    strange bigint;
  BEGIN
    SELECT * INTO STRICT wanted FROM ledger_transactions WHERE id = subject;
    SELECT coalesce(sum(amount), 0),
           coalesce(sum(amount) FILTER (WHERE account = 'partner_wallet:' || wanted.wallet_id), 0),
           count(*) FILTER (WHERE currency <> wanted.currency)
      INTO total, own, strange FROM ledger_entries WHERE transaction_id = subject;
    IF total <> 0 OR own <> wanted.amount OR strange > 0 THEN
      RAISE EXCEPTION 'ledger transaction % does not balance', subject
        USING ERRCODE = 'check_violation', CONSTRAINT = 'ledger_balances';
    END IF;
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER ledger_transactions_balance AFTER INSERT ON ledger_transactions
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ledger_transaction_balances();
  CREATE CONSTRAINT TRIGGER ledger_entries_balance AFTER INSERT ON ledger_entries
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ledger_transaction_balances();

  CREATE FUNCTION ledger_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    RAISE EXCEPTION 'the ledger is append-only'
      USING ERRCODE = 'restrict_violation', CONSTRAINT = 'ledger_append_only';
  END $$;
  CREATE TRIGGER ledger_transactions_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_transactions
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_is_append_only();
  CREATE TRIGGER ledger_entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entries
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_is_append_only();
`;

const CREATE_SOURCES = `
  -- Where a live package comes from, and what one costs us there.
  CREATE TABLE package_sources (
    package_id text COLLATE "C" PRIMARY KEY,
    provider text COLLATE "C" NOT NULL,
    upstream_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('base', 'topup')),
    -- millionths of the currency's unit
    cost_micros bigint NOT NULL CHECK (cost_micros >= 0),
    cost_currency text COLLATE "C" NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT package_sources_upstream UNIQUE (provider, kind, upstream_id)
  );
`;

const WIDEN_ORDERS = `
  ALTER TABLE orders
    -- the wholesaler's name of the package and what one costs there, as they were at acceptance
    ADD COLUMN upstream_package_id text COLLATE "C",
    ADD COLUMN unit_cost_micros bigint CHECK (unit_cost_micros >= 0),
    ADD COLUMN unit_cost_currency text COLLATE "C",
    -- the last placement that may have taken effect upstream; null: none has ever left
    ADD COLUMN upstream_placed_at timestamptz,
    ADD COLUMN cancel_requested_at timestamptz,
    -- the class of the last attempt's error, for support
    ADD COLUMN last_error text COLLATE "C",
    ADD CHECK ((unit_cost_micros IS NULL) = (unit_cost_currency IS NULL));
  UPDATE orders SET upstream_package_id = package_id,
    upstream_placed_at = CASE WHEN status <> 'pending' THEN created_at END,
    cancel_requested_at = CASE WHEN status = 'canceling' THEN updated_at END;
  ALTER TABLE orders ALTER COLUMN upstream_package_id SET NOT NULL;
  CREATE INDEX orders_open ON orders (created_at) WHERE status IN ('processing', 'canceling');
`;
