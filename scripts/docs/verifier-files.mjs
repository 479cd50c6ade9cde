/** Heading of docs/webhooks.md, language of its block, name of the file. */
const FILES = [
  ['TypeScript', 'typescript', 'verify-webhook-signature.ts', '//'],
  ['Python', 'python', 'verify_webhook_signature.py', '#'],
  ['Go', 'go', 'verify_webhook_signature.go', '//'],
  ['PHP', 'php', 'verify_webhook_signature.php', '//'],
  ['Java', 'java', 'WebhookSignature.java', '//'],
  ['C#', 'csharp', 'WebhookSignature.cs', '//'],
  ['Ruby', 'ruby', 'verify_webhook_signature.rb', '#'],
];

/** The functions of the webhook page as files to copy: the page is what the tests run. */
export function verifierFiles(page) {
  return Object.fromEntries(
    FILES.map(([heading, language, name, comment]) => {
      const block = new RegExp(`^### ${heading}\n[^]*?^\`\`\`${language}\n([^]*?\n)\`\`\`$`, 'm').exec(page);
      if (block === null) throw new Error(`docs/webhooks.md has no ${language} below "### ${heading}"`);
      return [
        `guides/verifiers/${name}`,
        headed(block[1], `${comment} Written by \`npm run docs\` from docs/webhooks.md.`),
      ];
    }),
  );
}

/** PHP's opening tag has to come first. */
function headed(code, line) {
  return code.startsWith('<?php\n') ? code.replace('<?php\n', `<?php\n\n${line}\n`) : `${line}\n${code}`;
}
