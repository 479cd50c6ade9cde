import type { EntityManager, ObjectLiteral } from 'typeorm';

/**
 * SQL list of the entity's columns. They are named one by one, because a prepared statement must not read new columns
 * after a migration.
 */
export function selectList<Entity extends ObjectLiteral>(
  manager: EntityManager,
  target: new () => Entity,
  alias: string,
): string {
  const { columns } = manager.dataSource.getMetadata(target);
  return columns
    .filter(({ isSelect }) => isSelect)
    .map(({ databaseName }) => `${alias}.${databaseName}`)
    .join(', ');
}

/**
 * Converts a row of hand-written SQL to its entity, applying each column's transformer.
 * @throws Error when the row lacks a column that the entity has
 */
export function rowToEntity<Entity extends ObjectLiteral>(
  manager: EntityManager,
  target: new () => Entity,
  row: Readonly<Record<string, unknown>>,
): Entity {
  const entity = new target();
  for (const column of manager.dataSource.getMetadata(target).columns) {
    const { databaseName, propertyName, transformer, isSelect } = column;
    if (!isSelect) continue;
    if (row[databaseName] === undefined) throw new Error(`the statement reads no column ${databaseName}`);
    if (Array.isArray(transformer)) throw new Error(`${propertyName} has several transformers`);
    const value = row[databaseName];
    (entity as Record<string, unknown>)[propertyName] = transformer ? transformer.from(value) : value;
  }
  return entity;
}
