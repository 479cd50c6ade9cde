import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';

interface Failure {
  readonly failure: string;
}

/** A process of the bench's own that answers one question at a time: work apart must not share our event loop. */
export class ChildLink<Question extends object, Answer extends object> {
  private constructor(private readonly child: ChildProcess) {}

  /** @param module the compiled file, as a URL beside the caller's */
  static start<Q extends object, A extends object>(module: URL): ChildLink<Q, A> {
    return new ChildLink<Q, A>(fork(module, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }));
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** @throws Error when the child fails or ends without an answer */
  async ask(question: Question): Promise<Answer> {
    this.child.send(question);
    const aborter = new AbortController();
    try {
      return await Promise.race([
        once(this.child, 'message', { signal: aborter.signal }).then(([answer]) => orThrow<Answer>(answer)),
        once(this.child, 'exit', { signal: aborter.signal }).then(([code]) => {
          throw new Error(`a process of the bench ended with ${String(code)}`);
        }),
      ]);
    } finally {
      aborter.abort();
    }
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    if (this.child.connected) this.child.disconnect();
    else this.child.kill('SIGTERM');
    await ended;
  }
}

/** The child's side of a link. It ends with its parent. */
export function answerParent<Question, Answer extends object>(
  answer: (question: Question) => Promise<Answer>,
): void {
  process.on('disconnect', () => process.exit(0));
  process.on('message', (question) => {
    answer(question as Question).then(
      (result) => process.send!(result),
      (error: unknown) => process.send!({ failure: (error as Error).stack ?? String(error) }),
    );
  });
}

function orThrow<Answer extends object>(answer: Answer | Failure): Answer {
  if ('failure' in answer) throw new Error(answer.failure);
  return answer;
}
