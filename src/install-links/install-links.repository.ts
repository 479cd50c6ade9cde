import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager, FindOptionsWhere } from 'typeorm';
import type { Page } from '../common/page.js';
import type { ReadScope } from '../common/tenant-scope.js';
import { KeysetPages, type ListOptions, modeIn, NOW, sql, type Tx } from '../infra/database/index.js';
import { InstallLinkEntity } from './install-link.entity.js';

export type NewInstallLink = Pick<
  InstallLinkEntity,
  'id' | 'partnerId' | 'mode' | 'esimId' | 'tokenHash' | 'locale' | 'accessCodeHash'
> & { readonly expiresInDays: number };

/** A link of one eSIM. */
export interface LinkPlace {
  readonly esimId: string;
  readonly id: string;
}

/** How often an eSIM's links were opened. */
export interface LinkUse {
  readonly count: number;
  readonly lastOpenedAt: Date | null;
}

/** SQL of `install_links`, except the install page's. All times use the database's clock (D40). */
@Injectable()
export class InstallLinksRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly pages: KeysetPages,
  ) {}

  async insert(tx: Tx, { expiresInDays, ...link }: NewInstallLink): Promise<InstallLinkEntity> {
    await tx.manager
      .createQueryBuilder()
      .insert()
      .into(InstallLinkEntity)
      .values({
        ...link,
        createdAt: () => NOW,
        expiresAt: () => `${NOW} + :days::int * interval '1 day'`,
      })
      .setParameters({ days: expiresInDays })
      .execute();
    return tx.manager.findOneByOrFail(InstallLinkEntity, { id: link.id });
  }

  /** A link of one partner and mode; anything else is the same 404 (D14). */
  async find(scope: ReadScope, place: LinkPlace): Promise<InstallLinkEntity | null> {
    return this.manager.findOneBy(InstallLinkEntity, within(scope, place));
  }

  async list(
    { partnerId, mode }: ReadScope,
    esimId: string,
    options: ListOptions,
  ): Promise<Page<InstallLinkEntity>> {
    const query = this.manager
      .createQueryBuilder(InstallLinkEntity, 't')
      .where({ esimId, partnerId, mode: modeIn(mode) });
    return this.pages.list(query, options);
  }

  async countOfEsim(tx: Tx, esimId: string): Promise<number> {
    return tx.manager.countBy(InstallLinkEntity, { esimId });
  }

  /** The use of these eSIMs' links, by eSIM; an eSIM without a link is missing. */
  async usesOf(esimIds: readonly string[]): Promise<ReadonlyMap<string, LinkUse>> {
    const { rows } = await sql<{ esim_id: string; count: number; last_opened_at: Date | null }>(
      this.manager,
      `SELECT esim_id, count(*)::int AS count, max(last_opened_at) AS last_opened_at
       FROM install_links WHERE esim_id = ANY ($1) GROUP BY esim_id`,
      [esimIds],
    );
    return new Map(
      rows.map(({ esim_id: id, count, last_opened_at: at }) => [id, { count, lastOpenedAt: at }]),
    );
  }

  /** False when there is no such link. */
  async delete(tx: Tx, scope: ReadScope, place: LinkPlace): Promise<boolean> {
    const { affected } = await tx.manager.delete(InstallLinkEntity, within(scope, place));
    return affected === 1;
  }

  /** Deletes up to `limit` links that expired `days` days ago, and returns their number. */
  async purge(days: number, limit: number): Promise<number> {
    const { affected } = await sql(
      this.manager,
      `DELETE FROM install_links WHERE id = ANY (ARRAY(
         SELECT id FROM install_links WHERE expires_at < now() - $1::int * interval '1 day'
         ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))`,
      [days, limit],
    );
    return affected;
  }
}

function within(
  { partnerId, mode }: ReadScope,
  { esimId, id }: LinkPlace,
): FindOptionsWhere<InstallLinkEntity> {
  return { id, esimId, partnerId, mode: modeIn(mode) };
}
