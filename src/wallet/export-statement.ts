import { Injectable } from '@nestjs/common';
import type { LedgerTransactionEntity } from './wallet.entity.js';
import { WalletsRepository } from './wallets.repository.js';

/** Maximum transactions per file (D43): a few megabytes. */
export const MAX_EXPORTED = 10_000;
const PAGE = 1_000;

const COLUMNS = [
  'id',
  'created_at',
  'type',
  'amount_minor_units',
  'currency',
  'balance_after_minor_units',
  'order_id',
  'topup_id',
  'reference',
] as const;

/** Exports a partner's statement for a spreadsheet. */
@Injectable()
export class ExportStatement {
  constructor(private readonly wallets: WalletsRepository) {}

  /** RFC 4180, newest first, at most MAX_EXPORTED transactions. */
  async toCsv(partnerId: string): Promise<string> {
    const lines = [COLUMNS.join(',')];
    let cursor: string | undefined;
    do {
      const page = await this.wallets.listTransactions(partnerId, { limit: PAGE, cursor });
      for (const transaction of page.items) lines.push(toLine(transaction));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined && lines.length <= MAX_EXPORTED);
    return `${lines.slice(0, MAX_EXPORTED + 1).join('\r\n')}\r\n`;
  }
}

function toLine(transaction: LedgerTransactionEntity): string {
  const { id, createdAt, type, amount, currency, balanceAfter, orderId, topupId, reference } = transaction;
  const numbers = [amount, currency, balanceAfter];
  return [id, createdAt.toISOString(), type, ...numbers, orderId, topupId, toText(reference)]
    .map(toCell)
    .join(',');
}

/** Spreadsheets evaluate cells that start with these characters (CSV injection), and partners choose the references. */
function toText(text: string | null): string | null {
  return text !== null && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
}

function toCell(value: string | number | null): string {
  const text = String(value ?? '');
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
