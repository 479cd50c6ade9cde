import type { Page } from './page.js';
import { type Program, whyMissing } from './program.js';

/** A language of the page: its function, made a program that judges all vectors at once. */
export interface VerifierLanguage {
  readonly name: string;
  readonly missing: string | null;
  program(page: Page): Program;
}

const NODE_MAIN = `
import { text } from 'node:stream/consumers';
import { verifyWebhookSignature } from './verify.mts';

const vectors = JSON.parse(await text(process.stdin));
const verdicts = vectors.map((v) =>
  verifyWebhookSignature(v.header, Buffer.from(v.body, 'base64'), v.secret, v.now ?? undefined));
console.log(JSON.stringify(verdicts));
`;

const PYTHON_MAIN = `
import base64
import json
import sys
from verify import verify_webhook_signature

print(json.dumps([
    verify_webhook_signature(v["header"], base64.b64decode(v["body"]), v["secret"], v["now"])
    for v in json.load(sys.stdin)
]))
`;

const GO_MAIN = `package main

import (
	"encoding/json"
	"os"
	"time"
)

func main() {
	var vectors []struct {
		Header, Secret string
		Body           []byte
		Now            *int64
	}
	if err := json.NewDecoder(os.Stdin).Decode(&vectors); err != nil {
		panic(err)
	}
	verdicts := []bool{}
	for _, v := range vectors {
		now := time.Now()
		if v.Now != nil {
			now = time.Unix(*v.Now, 0)
		}
		verdicts = append(verdicts, VerifyWebhookSignature(v.Header, v.Body, v.Secret, now))
	}
	if err := json.NewEncoder(os.Stdout).Encode(verdicts); err != nil {
		panic(err)
	}
}
`;

const PHP_MAIN = `<?php

require __DIR__ . '/verify.php';

$vectors = json_decode(stream_get_contents(STDIN), true, 512, JSON_THROW_ON_ERROR);
echo json_encode(array_map(
    fn (array $v): bool => verifyWebhookSignature($v['header'], base64_decode($v['body']), $v['secret'], $v['now']),
    $vectors,
));
`;

export const VERIFIER_LANGUAGES: readonly VerifierLanguage[] = [
  {
    name: 'TypeScript',
    missing: null,
    program: (page) => ({
      files: { 'verify.mts': page.code('### TypeScript', 'typescript'), 'main.mjs': NODE_MAIN },
      command: [process.execPath, '--no-warnings', 'main.mjs'],
    }),
  },
  {
    name: 'Python',
    missing: whyMissing('python3', '--version'),
    program: (page) => ({
      files: { 'verify.py': page.code('### Python', 'python'), 'main.py': PYTHON_MAIN },
      command: ['python3', 'main.py'],
    }),
  },
  {
    name: 'Go',
    missing: whyMissing('go', 'version'),
    program: (page) => ({
      // A program's package is always main; the rest stays as it is printed.
      files: {
        'verify.go': page.code('### Go', 'go').replace(/^package \w+$/m, 'package main'),
        'main.go': GO_MAIN,
      },
      command: ['go', 'run', 'main.go', 'verify.go'],
    }),
  },
  {
    name: 'PHP',
    missing: whyMissing('php', '--version'),
    program: (page) => ({
      files: { 'verify.php': page.code('### PHP', 'php'), 'main.php': PHP_MAIN },
      command: ['php', 'main.php'],
    }),
  },
];
