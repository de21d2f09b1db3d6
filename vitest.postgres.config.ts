/**
 * The suites of the service, and of what uses it, with PostgreSQL in the place of SQLite: `npm run test:postgres`. The suites of
 * the contracts run on both databases in `npm test`.
 */
import { defineConfig } from 'vitest/config'
import { installEngines } from './test/support/install-engines.js'
import usual from './vitest.config.js'

installEngines()
const { hasPostgres } = await import('./test/support/postgres-server.js')

/** Those that use the database; the others test HTTP, engines or clients, for which it makes no difference. */
const FILES = [
  'test/service/{fuzz,money,openapi-responses,outputs,processes,queue,references,refusals,roles,runs}.test.ts',
  'test/service/metrics/metrics.test.ts',
  'test/service/console/{accounts,credits,keys,limits,runs,sessions,signing-in,thumbnails}.test.ts',
  'test/cli/{admin,batch,run}.test.ts',
  'test/e2e/{engines,serve}.test.ts',
]

export default defineConfig({
  test: {
    ...usual.test,
    include: hasPostgres ? FILES : [],
    passWithNoTests: !hasPostgres,
    globalSetup: ['./test/support/global-setup.ts', './test/support/postgres-for-all.ts'],
    setupFiles: ['./test/support/count-queries.ts'],
  },
})
