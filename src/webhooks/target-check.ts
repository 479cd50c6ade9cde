import { Injectable } from '@nestjs/common';
import { ValidationFailed } from '../common/errors/index.js';
import { TargetPolicy } from './target-policy.js';

/** The check of a URL at registration, without network (D35). */
@Injectable()
export class TargetCheck {
  constructor(private readonly policy: TargetPolicy) {}

  /** @throws ValidationFailed with the pointer `/url` */
  assertAllowed(url: string): void {
    const refusal = this.policy.refuseUrl(url);
    if (refusal) throw new ValidationFailed([{ pointer: '/url', ...refusal }]);
  }
}
