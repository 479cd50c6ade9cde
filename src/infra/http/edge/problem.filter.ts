import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { AppError } from '../../../common/errors/index.js';
import { finishCall } from './connections.js';
import { toFailure } from './failure.js';
import { sendProblem } from './problem-reply.js';

/**
 * Writes the one error body for everything thrown behind the edge: by guards, pipes, handlers, Nest and
 * Fastify (D6). The only exception filter of an app; register it as `APP_FILTER` or with `useGlobalFilters`.
 */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(private readonly onUnexpectedError: (error: unknown, requestId: string) => void) {}

  catch(exception: unknown, host: ArgumentsHost): void {
    const reply = host.switchToHttp().getResponse<FastifyReply>();
    const failure = toFailure(exception);
    if (!failure) return;
    if (failure.unexpected) this.onUnexpectedError(exception, reply.request.id);
    if (reply.sent) return;
    if (reply.raw.headersSent) cutOff(reply, failure.error);
    else sendProblem(reply, failure.error);
  }
}

/** Half an answer cannot become an error body; cutting it off tells the caller that it is not whole. */
function cutOff(reply: FastifyReply, error: AppError): void {
  reply.request.errorCode = error.code;
  finishCall(reply, error.status);
  reply.raw.destroy();
}
