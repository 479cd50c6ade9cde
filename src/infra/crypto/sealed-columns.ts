/** A column with encrypted text. `owner` is the primary key column to which its ciphertexts are bound. */
export interface SealedColumn {
  readonly name: string;
  readonly table: string;
  readonly owner: string;
  readonly column: string;
}

/** Every column with encrypted text; a test finds missing ones. */
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

/** SQL for the key id of an encrypted text; each column has an index on it with exactly this collation. */
export const keyIdOf = (column: string): string => `split_part(${column}, '.', 2) COLLATE "C"`;
