import type { Page } from './page.js';
import { whyMissing } from '../harness/why-missing.js';
import type { Program } from './program.js';
import type { SignatureVector } from './signature-vectors.js';

/** A language of the page: its function, wrapped in a program that judges all vectors. */
export interface VerifierLanguage {
  readonly name: string;
  readonly missing: string | null;
  program(page: Page): Program;
  /** The program's input for languages without a JSON parser. By default it is the vectors. */
  readonly input?: (vectors: readonly SignatureVector[]) => unknown;
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

const JAVA_MAIN = String.raw`
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.StringJoiner;

public class Main {
    private static byte[] bytes(String field) {
        return Base64.getDecoder().decode(field);
    }

    private static String text(String field) {
        return field.equals("-") ? null : new String(bytes(field), StandardCharsets.UTF_8);
    }

    public static void main(String[] arguments) throws Exception {
        String input = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
        StringJoiner verdicts = new StringJoiner(",", "[", "]");
        for (String line : input.replaceAll("[\\[\\]\"]", "").split(",")) {
            String[] fields = line.split(" ", -1);
            long now = fields[3].equals("-") ? System.currentTimeMillis() / 1000 : Long.parseLong(fields[3]);
            boolean verdict = WebhookSignature.verify(text(fields[0]), bytes(fields[1]), text(fields[2]), now);
            verdicts.add(String.valueOf(verdict));
        }
        System.out.println(verdicts);
    }
}
`;

const CSHARP_MAIN = String.raw`
using System;
using System.Linq;
using System.Text;

public static class Program
{
    private static string Text(string field)
    {
        return field == "-" ? null : Encoding.UTF8.GetString(Convert.FromBase64String(field));
    }

    private static string Verdict(string line)
    {
        string[] fields = line.Split(' ');
        long now = fields[3] == "-" ? DateTimeOffset.UtcNow.ToUnixTimeSeconds() : long.Parse(fields[3]);
        byte[] body = Convert.FromBase64String(fields[1]);
        return WebhookSignature.Verify(Text(fields[0]), body, Text(fields[2]), now) ? "true" : "false";
    }

    public static void Main()
    {
        string input = Console.In.ReadToEnd().Replace("[", "").Replace("]", "").Replace("\"", "");
        Console.WriteLine("[" + string.Join(",", input.Split(',').Select(Verdict)) + "]");
    }
}
`;

const RUBY_MAIN = `
require 'json'
require_relative 'verify'

verdicts = JSON.parse($stdin.read).map do |v|
  now = v['now'].nil? ? Time.now.to_i : v['now']
  verify_webhook_signature(v['header'], v['body'].unpack1('m'), v['secret'], now)
end
puts JSON.generate(verdicts)
`;

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** One base64 line per vector, because neither the JDK nor Mono's class library parses JSON. */
function linesOf(vectors: readonly SignatureVector[]): string[] {
  return vectors.map(({ header, body, secret, now }) =>
    [header === null ? '-' : base64(header), body, base64(secret), now ?? '-'].join(' '),
  );
}

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
      // A program must be package main. The rest is exactly as printed on the page.
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
  {
    name: 'Java',
    missing: whyMissing('javac', '--version'),
    program: (page) => ({
      files: { 'WebhookSignature.java': page.code('### Java', 'java'), 'Main.java': JAVA_MAIN },
      command: ['bash', '-c', 'javac *.java && java Main'],
    }),
    input: linesOf,
  },
  {
    name: 'C#',
    missing: whyMissing('mcs', '--version'),
    program: (page) => ({
      files: { 'WebhookSignature.cs': page.code('### C#', 'csharp'), 'Main.cs': CSHARP_MAIN },
      command: ['bash', '-c', 'mcs -out:main.exe *.cs && mono main.exe'],
    }),
    input: linesOf,
  },
  {
    name: 'Ruby',
    missing: whyMissing('ruby', '--version'),
    program: (page) => ({
      files: { 'verify.rb': page.code('### Ruby', 'ruby'), 'main.rb': RUBY_MAIN },
      command: ['ruby', 'main.rb'],
    }),
  },
];
