import { randomUUID } from 'node:crypto';
import { styleText } from 'node:util';
import { printable, printableJson, printableLines } from './printable.js';

const ESCAPE = '\u001B';

type Style = Parameters<typeof styleText>[0];

/** Results go to stdout and everything else to stderr, so that a pipe gets only results. */
export interface Streams {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}

/**
 * Prints for people, or for programs with `--json`. Colors follow NO_COLOR, FORCE_COLOR and the terminal. All output
 * passes through this class, which makes it printable, because almost every line contains external text.
 */
export class Output {
  /** Placeholder for the escape character of our own colors. It is random, so no external text can contain it. */
  private readonly escape = `<${randomUUID()}>`;

  constructor(
    private readonly streams: Streams,
    readonly json: boolean,
  ) {}

  /** Prints a result for people. Prints nothing with `--json`. */
  line(text = ''): void {
    if (!this.json) this.print(this.streams.stdout, text);
  }

  /** Prints a result for programs on one line. Prints nothing without `--json`. */
  data(value: unknown): void {
    if (this.json) this.streams.stdout.write(`${printableJson(value)}\n`);
  }

  /** Prints our own text, including its line breaks. */
  raw(text: string): void {
    this.streams.stdout.write(printableLines(text));
  }

  /** Prints progress. `--json` suppresses it. */
  note(text: string): void {
    if (!this.json) this.print(this.streams.stderr, this.dim(text));
  }

  /** Prints text to stderr that must not be lost even if the command fails. `--json` does not suppress it. */
  keep(text: string): void {
    this.print(this.streams.stderr, text);
  }

  warn(text: string): void {
    this.print(this.streams.stderr, this.paint('yellow', text, this.streams.stderr));
  }

  /** @param hints next steps, one per line */
  failure(message: string, hints: readonly string[] = []): void {
    const { stderr } = this.streams;
    this.print(stderr, this.paint('red', `error: ${message}`, stderr));
    for (const hint of hints) this.print(stderr, hint);
  }

  /** A line that each update overwrites. Prints nothing unless stderr is a terminal. */
  progress(): { update(text: string): void; done(): void } {
    const { stderr } = this.streams;
    const shown = stderr.isTTY && !this.json;
    return {
      update: (text) => void (shown && stderr.write(`\r\u001B[2K${this.shown(this.dim(text))}`)),
      done: () => void (shown && stderr.write('\r\u001B[2K')),
    };
  }

  /** Pads each column to its widest cell. */
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

  /** Prints the option that shows the next page, if there is one. */
  noteNextPage({ hasMore, nextCursor }: { hasMore: boolean; nextCursor: string | null }): void {
    if (hasMore && nextCursor) this.note(`next page: --cursor=${nextCursor}`);
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
    return styleText(style, printable(text), { stream }).replaceAll(ESCAPE, this.escape);
  }

  private print(stream: NodeJS.WriteStream, text: string): void {
    stream.write(`${this.shown(text)}\n`);
  }

  private shown(text: string): string {
    return printable(text).replaceAll(this.escape, ESCAPE);
  }
}
