import type { EntityManager, EntityTarget, QueryDeepPartialEntity } from 'typeorm';

/**
 * Changes the row of `id` and returns the `version` assigned by the table's trigger (D48), in one statement.
 * @throws Error when there is no such row
 */
export async function updateVersioned<Entity extends { readonly id: string; readonly version: number }>(
  manager: EntityManager,
  entity: EntityTarget<Entity>,
  id: string,
  changes: Partial<Entity>,
): Promise<number> {
  const result = await manager
    .createQueryBuilder()
    .update(entity)
    .set(changes as QueryDeepPartialEntity<Entity>)
    .where('id = :id', { id })
    .returning('version')
    .execute();
  const [row] = result.raw as { version: number }[];
  if (!row) throw new Error('the row to change no longer exists');
  return row.version;
}
