import { Injectable, type PipeTransform } from '@nestjs/common';
import { NotFound } from '../../common/errors/index.js';
import { type IdPrefix, isId } from '../../common/ids.js';

/** An id in a path; a malformed one is the same 404 as one that never existed (D10, D14). */
export function PathId(prefix: IdPrefix): new () => PipeTransform<string, string> {
  @Injectable()
  class PathIdPipe implements PipeTransform<string, string> {
    transform(value: string): string {
      if (!isId(prefix, value)) throw new NotFound();
      return value;
    }
  }
  return PathIdPipe;
}
