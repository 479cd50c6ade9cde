import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

/** Results go to stdout, everything else to stderr, so that a pipe gets results only. */
export interface Streams {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}

/** Prints for people, or with `--json` for programs. Colours follow NO_COLOR, FORCE_COLOR and the terminal. */
export class Output {
  constructor(
    private readonly streams: Streams,
    readonly json: boolean,
  ) {}

  /** A result: text for people. Nothing with `--json`. */
  line(text = ''): void {
    if (!this.json) this.streams.stdout.write(`${text}\n`);
  }

  /** A result for programs, on one line. Nothing without `--json`. */
  data(value: unknown): void {
    if (this.json) this.streams.stdout.write(`${JSON.stringify(value)}\n`);
  }

  /** Text as it is, with its own line ends. */
  raw(text: string): void {
    this.streams.stdout.write(text);
  }

  /** What is under way. Only a person at a terminal sees it. */
  note(text: string): void {
    if (!this.json) this.streams.stderr.write(`${this.dim(text)}\n`);
  }

  /** What must not be lost, whatever becomes of the command: on stderr, for programs too. */
  keep(text: string): void {
    this.streams.stderr.write(`${text}\n`);
  }

  warn(text: string): void {
    this.streams.stderr.write(`${this.paint('yellow', text, this.streams.stderr)}\n`);
  }

  failure(message: string, hint?: string): void {
    const { stderr } = this.streams;
    stderr.write(`${this.paint('red', `error: ${message}`, stderr)}\n`);
    if (hint !== undefined) stderr.write(`${hint}\n`);
  }

  /** A line that is written over until `done`; on a pipe nothing. */
  progress(): { update(text: string): void; done(): void } {
    const { stderr } = this.streams;
    const shown = stderr.isTTY && !this.json;
    return {
      update: (text) => void (shown && stderr.write(`\r\u001B[2K${this.dim(text)}`)),
      done: () => void (shown && stderr.write('\r\u001B[2K')),
    };
  }

  /** @param rows cells; the columns are as wide as their widest cell */
  table(rows: readonly (readonly string[])[]): void {
    const widths = (rows[0] ?? []).map((_, column) =>
      Math.max(...rows.map((row) => (row[column] ?? '').length)),
    );
    for (const row of rows) {
      this.line(
        row
          .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
          .join('  ')
          .trimEnd(),
      );
    }
  }

  good(text: string): string {
    return this.paint('green', text);
  }

  bad(text: string): string {
    return this.paint('red', text);
  }

  /** How to go on behind a page, where there is more. */
  noteNextPage({ hasMore, nextCursor }: { hasMore: boolean; nextCursor: string | null }): void {
    if (hasMore && nextCursor) this.note(`more: --cursor ${nextCursor}`);
  }

  careful(text: string): string {
    return this.paint('yellow', text);
  }

  dim(text: string): string {
    return this.paint('gray', text);
  }

  bold(text: string): string {
    return this.paint('bold', text);
  }

  private paint(style: Style, text: string, stream: NodeJS.WriteStream = this.streams.stdout): string {
    return styleText(style, text, { stream });
  }
}
