import js from '@eslint/js';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

export default defineConfig(
  globalIgnores([
    '**/dist',
    'node_modules',
    '.data',
    'bench/results',
    'portal/src/api/types.gen.ts',
    'sdk/src/generated',
  ]),
  js.configs.recommended,
  {
    files: ['**/*.ts', '**/*.tsx'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // Nest modules are empty classes by design.
      '@typescript-eslint/no-extraneous-class': 'off',
      'no-control-regex': 'off',
    },
  },
  {
    files: ['test/**/*.ts', 'bench/**/*.ts'],
    rules: {
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
    },
  },
  {
    files: ['test/**/*.ts'],
    ignores: ['test/harness/database.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector: "NewExpression[callee.name='Pool']",
          message: 'openPool() of test/harness outlives lost connections.',
        },
      ],
    },
  },
  { files: ['**/*.js', '**/*.cjs', '**/*.mjs'], extends: [tseslint.configs.disableTypeChecked] },
  {
    files: ['scripts/**', 'ops/**', '.ci/**'],
    // ESLint runs on the same Node as these programs, and knows its globals.
    languageOptions: {
      globals: Object.fromEntries(Object.getOwnPropertyNames(globalThis).map((name) => [name, 'readonly'])),
    },
  },
  {
    files: ['portal/docs/**'],
    languageOptions: {
      globals: Object.fromEntries(
        ['document', 'fetch', 'localStorage', 'navigator', 'setTimeout', 'window'].map((name) => [
          name,
          'readonly',
        ]),
      ),
    },
  },
  { files: ['**/*.cjs'], languageOptions: { globals: { module: 'writable' } } },
);
