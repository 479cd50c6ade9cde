import { Injectable } from '@nestjs/common';
import { CatalogService, type PackageEntity } from '../catalog/index.js';
import { NotFound } from '../common/errors/index.js';
import type { Mode } from '../common/mode.js';
import type { Page } from '../common/page.js';
import { CursorCodec, SecretBox } from '../infra/crypto/index.js';
import type { ListOptions } from '../infra/database/index.js';
import type { EsimStatus, InstallData } from './esim.js';
import type { EsimEntity } from './esim.entity.js';
import { type EsimFilters, EsimsRepository } from './esims.repository.js';

export interface EsimReader {
  readonly partnerId: string;
  readonly mode: Mode;
}

/** D23: a depleted eSIM can be topped up, an expired one cannot. */
const TAKES_TOPUPS: readonly EsimStatus[] = ['issued', 'active', 'depleted'];

/** Reads eSIMs of one partner and mode; anything else is the same 404 (D14). */
@Injectable()
export class ReadEsims {
  constructor(
    private readonly esims: EsimsRepository,
    private readonly catalog: CatalogService,
    private readonly secrets: SecretBox,
    private readonly cursors: CursorCodec,
  ) {}

  /** @throws NotFound */
  async getById(reader: EsimReader, id: string): Promise<EsimEntity> {
    const esim = await this.esims.find(reader, id);
    if (!esim) throw new NotFound();
    return esim;
  }

  /** The eSIM with what it is installed with: for the two reads that may show it (D25). @throws NotFound */
  async getWithInstallData(
    reader: EsimReader,
    id: string,
  ): Promise<{ esim: EsimEntity; install: InstallData }> {
    const esim = await this.getById(reader, id);
    const sealed = await this.esims.getInstallSecrets(id);
    return { esim, install: JSON.parse(this.secrets.open(sealed, id)) as InstallData };
  }

  async list(reader: EsimReader, filters: EsimFilters, options: ListOptions): Promise<Page<EsimEntity>> {
    return this.esims.list(reader, filters, options);
  }

  /** Top-up packages that fit this eSIM now, cheapest first. @throws NotFound, AppError `invalid_cursor` */
  async listTopupPackages(
    reader: EsimReader,
    id: string,
    options: ListOptions,
  ): Promise<Page<PackageEntity>> {
    const esim = await this.getById(reader, id);
    const fitting = TAKES_TOPUPS.includes(esim.status)
      ? await this.catalog.listTopupsFor(reader.mode, esim.packageId)
      : [];
    const scope = ['topup-packages', reader.partnerId, reader.mode, id];
    const start = options.cursor === undefined ? 0 : Number(this.cursors.decode(options.cursor, scope)[0]);
    const end = start + options.limit;
    const hasMore = end < fitting.length;
    return {
      items: fitting.slice(start, end),
      hasMore,
      nextCursor: hasMore ? this.cursors.encode([end], scope) : null,
    };
  }
}
