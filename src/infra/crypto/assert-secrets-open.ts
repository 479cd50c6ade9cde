import type { SecretKey } from '../../config/index.js';
import { SecretBox } from './secret-box.js';
import { keyIdOf, SEALED_COLUMNS, type SealedColumn } from './sealed-columns.js';

/** Runs one statement without parameters and returns its rows. */
export type Query = (statement: string) => Promise<readonly unknown[]>;

/** Several samples, so that one altered row does not look like a wrong key. */
const SAMPLES = 3;

interface Sample {
  readonly keyId: string;
  readonly owner: string;
  readonly sealed: string;
}

/** The reason why stored secrets cannot be decrypted. */
export interface KeyFault {
  readonly keyId: string;
  /** `missing`: the ring has no key with this id. `wrong`: the key's bytes differ from those that encrypted. */
  readonly kind: 'missing' | 'wrong';
  /** Name of the column. */
  readonly column: string;
}

/** Jumps from key id to key id through the index, so that the number of rows does not matter. */
function samplesOf({ table, owner, column }: SealedColumn): string {
  const key = keyIdOf(column);
  const next = (after: string): string =>
    `(SELECT ${key} FROM ${table} WHERE ${key} > ${after} ORDER BY ${key} LIMIT 1)`;
  return `
    WITH RECURSIVE used (id) AS (
      SELECT ${next(`''`)}
      UNION ALL SELECT ${next('used.id')} FROM used WHERE used.id IS NOT NULL)
    SELECT used.id AS "keyId", sample.owner, sample.sealed FROM used CROSS JOIN LATERAL (
      SELECT ${owner} AS owner, ${column} AS sealed FROM ${table}
      WHERE ${key} >= used.id ORDER BY ${key} LIMIT ${SAMPLES}) AS sample
    WHERE used.id = split_part(sample.sealed, '.', 2) COLLATE "C"`;
}

/** Decrypts a few stored secrets of every key id in use. Empty when the ring decrypts them. */
export async function findKeyFaults(query: Query, secretKeys: readonly SecretKey[]): Promise<KeyFault[]> {
  const box = new SecretBox({ secretKeys });
  const ring = new Set(secretKeys.map(({ id }) => id));
  const faults: KeyFault[] = [];
  for (const column of SEALED_COLUMNS) {
    const samples = (await query(samplesOf(column))) as readonly Sample[];
    for (const keyId of new Set(samples.map((sample) => sample.keyId))) {
      const opens = samples.some((sample) => sample.keyId === keyId && canOpen(box, sample));
      if (!opens) faults.push({ keyId, kind: ring.has(keyId) ? 'wrong' : 'missing', column: column.name });
    }
  }
  return faults;
}

function canOpen(box: SecretBox, { sealed, owner }: Sample): boolean {
  try {
    box.open(sealed, owner);
    return true;
  } catch {
    return false;
  }
}

/** One line for a person, with the key's id but never its bytes. */
export function describeKeyFault({ keyId, kind, column }: KeyFault): string {
  return kind === 'wrong'
    ? `SECRETS_KEYS: the key "${keyId}" is not the key that sealed the ${column} under this id. Restore its bytes. A new key needs a new id.`
    : `SECRETS_KEYS has no key "${keyId}", which sealed the ${column}. Add it back after the newest key, and run npm run reseal before you remove it.`;
}

/** Keeps a process that cannot decrypt stored secrets from starting. @throws Error that names every such key */
export async function assertSecretsOpen(query: Query, secretKeys: readonly SecretKey[]): Promise<void> {
  const faults = await findKeyFaults(query, secretKeys);
  if (faults.length > 0) throw new Error(faults.map(describeKeyFault).join(' '));
}
