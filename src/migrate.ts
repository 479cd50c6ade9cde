import { ConfigError, readDatabaseSettings } from './config/index.js';
import { migrateDatabase } from './apps/migration.js';

try {
  const report = await migrateDatabase(readDatabaseSettings(process.env));
  console.log(
    `migrations run: ${report.migrations.join(', ') || 'none'}; packages changed: ${report.packages}`,
  );
} catch (error) {
  console.error(error instanceof ConfigError ? error.message : `migrate failed: ${(error as Error).message}`);
  process.exitCode = 1;
}
