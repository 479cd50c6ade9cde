/** Maximum number of informational responses (1xx) before the final status line (D30). */
export const MAX_INFORMATIONAL_ANSWERS = 100;
/** Maximum bytes before the final status line. */
export const MAX_INFORMATIONAL_BYTES = 64 * 1_024;
/** Maximum bytes of the final response's headers. Beyond that the status line alone decides. */
export const MAX_HEADER_BYTES = 64 * 1_024;
/** Maximum bytes of a whole response, including chunk framing. */
export const MAX_ANSWER_BYTES = 192 * 1_024;

export class InformationalFlood extends Error {
  readonly code = 'INFORMATIONAL_FLOOD';
}

export class AnswerTooLong extends Error {
  readonly code = 'ANSWER_TOO_LONG';
}

/** The HTTP versions that Node's parser accepts. The line may end without CR. */
const STATUS_LINE = /^HTTP\/(?:0\.9|1\.[01]|2\.0) (\d{3})[ \r\n]/;
/** Node's parser skips empty lines before a status line. */
const EMPTY_LINES = /^[\r\n]+/;
const END_OF_HEADERS = '\r\n\r\n';
const SWITCHING_PROTOCOLS = 101;

/** Reads the status line in parallel to Node's parser, which reports a status only after all headers have arrived. */
export class AnswerHead {
  private status: number | null = null;
  private unread = '';
  private informational = 0;
  private bytes = 0;
  private isDone = false;

  /** Status of the final status line; set as soon as the line is complete or too long. */
  get statusCode(): number | null {
    return this.status;
  }

  /** @throws InformationalFlood; AnswerTooLong */
  read(chunk: Buffer): void {
    this.bytes += chunk.length;
    if (!this.isDone) this.readLines(chunk);
    if (this.bytes > MAX_ANSWER_BYTES) throw new AnswerTooLong();
  }

  private readLines(chunk: Buffer): void {
    this.unread = (this.unread + chunk.toString('latin1')).replace(EMPTY_LINES, '');
    while (this.unread.includes('\n') || this.unread.length > MAX_HEADER_BYTES) {
      const status = Number(STATUS_LINE.exec(this.unread)?.[1]);
      const isInformational = status < 200 && status !== SWITCHING_PROTOCOLS;
      if (!isInformational) return this.end(Number.isNaN(status) ? null : status);
      const end = this.unread.indexOf(END_OF_HEADERS);
      if (end === -1) break;
      this.unread = this.unread.slice(end + END_OF_HEADERS.length).replace(EMPTY_LINES, '');
      if (++this.informational > MAX_INFORMATIONAL_ANSWERS) throw new InformationalFlood();
    }
    if (this.bytes > MAX_INFORMATIONAL_BYTES) throw new InformationalFlood();
  }

  private end(status: number | null): void {
    this.status = status;
    this.unread = '';
    this.isDone = true;
  }
}
