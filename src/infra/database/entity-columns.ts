import type { EntityManager, ObjectLiteral } from 'typeorm';

/** A column's name and type in hand-written SQL. */
export interface SqlColumn {
  readonly name: string;
  /** Ends in `[]` for an array. */
  readonly type: string;
}

/**
 * The columns of these properties, in this order, so that hand-written SQL repeats nothing from the entity.
 * Repositories call it in their constructor.
 * @throws Error for a property without a column
 */
export function columnsOf<Entity extends ObjectLiteral>(
  manager: EntityManager,
  target: new () => Entity,
  properties: readonly (keyof Entity & string)[],
): readonly SqlColumn[] {
  const metadata = manager.dataSource.getMetadata(target);
  return properties.map((property) => {
    const column = metadata.findColumnWithPropertyName(property);
    if (typeof column?.type !== 'string') throw new Error(`${metadata.name}.${property} is no column`);
    return { name: column.databaseName, type: `${column.type}${column.isArray ? '[]' : ''}` };
  });
}
