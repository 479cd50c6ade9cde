/** Result of reading a body; `cut` and `late` bodies throw instead. */
export type ReadBody =
  | { readonly kind: 'json'; readonly json: unknown }
  | { readonly kind: 'unreadable'; readonly why: 'too_large' | 'not_json' };

/** Reads at most `maxBytes` and parses them. @throws the stream's error when the response is cut */
export async function readJsonBody(
  body: AsyncIterable<Uint8Array> & { destroy(): unknown },
  maxBytes: number,
): Promise<ReadBody> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) {
      body.destroy();
      return { kind: 'unreadable', why: 'too_large' };
    }
    chunks.push(chunk);
  }
  return parse(Buffer.concat(chunks, bytes));
}

function parse(bytes: Buffer): ReadBody {
  try {
    return { kind: 'json', json: JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) };
  } catch {
    return { kind: 'unreadable', why: 'not_json' };
  }
}
