/**
 * `npm run test:system`: what needs servers and browsers (PostgreSQL, nginx, S3, Chromium, Firefox), the packed package, other programs
 * around `rushes`, and films at full length. Tests are skipped where a part is not installed, and a line names it.
 */
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { findChromium } from './test/support/find-chromium.js'
import { findFirefox } from './test/support/find-firefox.js'
import { installEngines } from './test/support/install-engines.js'
import { COMMON } from './vitest.config.js'

installEngines()
const { hasPostgres } = await import('./test/support/postgres-server.js')

/** Tests that need another program are skipped without it. */
const PROGRAMS = ['nginx', 'psql', 'jq', 'make', 'python3', 'ffmpeg', 'ffprobe']
const isThere = (name: string) => folders.some((folder) => existsSync(join(folder, name)))
const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
const missing = PROGRAMS.filter((name) => !isThere(name))
if (findChromium() === undefined) missing.push('chromium (or CHROME_PATH)')
if (findFirefox() === undefined) missing.push('firefox (or FIREFOX_PATH)')
if (!hasPostgres) missing.push('PostgreSQL (test/engines, or PG_URL)')
if (missing.length > 0)
  process.stdout.write(`Not installed, so that their tests are skipped: ${missing.join(', ')}\n`)

/** Suites of `npm test` that use the service's database; the others test HTTP, engines or clients, for which it makes no difference. */
const ON_POSTGRES = [
  'test/service/{cancel,fuzz,money,openapi-responses,outputs,processes,queue,references,refusals,roles,runs,served-models}.test.ts',
  'test/service/metrics/metrics.test.ts',
  'test/service/console/{accounts,credits,keys,limits,references,runs,sessions,signing-in,thumbnails}.test.ts',
  'test/cli/{admin,run}.test.ts',
]

export default defineConfig({
  test: {
    reporters: ['default', './test/support/closing-line.ts'],
    globalSetup: ['./test/support/global-setup.ts', './test/support/memory-folder.ts'],
    maxWorkers: 4,
    projects: [
      { test: { ...COMMON, name: 'system', include: ['test/**/*.system.ts'], isolate: false } },
      {
        test: {
          ...COMMON,
          name: 'postgres',
          include: hasPostgres ? ON_POSTGRES : [],
          globalSetup: ['./test/support/postgres-for-all.ts'],
          isolate: false,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
