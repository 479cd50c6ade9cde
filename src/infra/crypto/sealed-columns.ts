/** A column of sealed text. `owner` is the column that its ciphertexts are bound to; it is the primary key. */
export interface SealedColumn {
  readonly name: string;
  readonly table: string;
  readonly owner: string;
  readonly column: string;
}

/** Every column with sealed text; a test finds one that is missing here. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { name: 'install data of eSIMs', table: 'esims', owner: 'id', column: 'install_secrets' },
  { name: 'signing secrets of endpoints', table: 'webhook_endpoints', owner: 'id', column: 'secret' },
  {
    name: 'previous signing secrets of endpoints',
    table: 'webhook_endpoints',
    owner: 'id',
    column: 'previous_secret',
  },
  {
    name: 'profiles of the sandbox provider',
    table: 'sandbox_upstream_orders',
    owner: 'reference',
    column: 'profiles',
  },
];

/** The key id of a sealed text; each column has an index on it, with this very collation. */
export const keyIdOf = (column: string): string => `split_part(${column}, '.', 2) COLLATE "C"`;
