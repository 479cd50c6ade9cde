import type { EntityManager, ObjectLiteral } from 'typeorm';

/** SQL: the entity's columns, named one by one, as a prepared statement must not read more after a migration. */
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
 * The entity of a row that hand-written SQL has read, with each column's transformer.
 * @throws Error when the row lacks a column: the entity has one more than the statement reads
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
