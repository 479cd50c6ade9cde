import {
  Body,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Head,
  HttpCode,
  Inject,
  Injectable,
  Post,
  Req,
  UseGuards,
} from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { AppError, NotFound } from '../../common/errors/index.js';
import { Authenticates } from '../../infra/http/index.js';
import { NoIdempotencyKey } from '../../infra/idempotency/index.js';
import { LOGGER } from '../../infra/logging.js';
import { CallbackSender } from './callback-authenticator.js';
import { TakeCallback } from './take-callback.js';

/** Seconds until the sender of a callback that could not be stored should retry. */
const UNAVAILABLE_RETRY_S = 5;

/** Asserts that `CallbackAuthenticator` let the call through. */
@Authenticates()
@Injectable()
class CallbackGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { principal } = context.switchToHttp().getRequest<FastifyRequest>();
    if (principal instanceof CallbackSender) return true;
    throw new NotFound();
  }
}

/** Responds 200 once the hints of a callback are stored, and 503 if they cannot be, so that the sender tries again. */
@Controller('callbacks/:provider/:secret')
@UseGuards(CallbackGuard)
export class CallbacksController {
  constructor(
    private readonly callbacks: TakeCallback,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** A sender may check that the address exists before it sends. */
  @Head()
  check(): void {}

  @Post()
  @HttpCode(200)
  @NoIdempotencyKey()
  async take(@Req() request: FastifyRequest, @Body() body: unknown): Promise<void> {
    if (body === undefined) throw new AppError('invalid_json');
    const sender = request.principal as CallbackSender;
    const { provider } = sender;
    try {
      sender.hints = await this.callbacks.take(provider, body);
    } catch (error) {
      this.logger.warn({ event: 'callback.not_stored', provider, err: error }, 'a callback was not stored');
      const headers = { 'retry-after': String(UNAVAILABLE_RETRY_S) };
      throw new AppError('service_unavailable', { headers, cause: error });
    }
  }
}
