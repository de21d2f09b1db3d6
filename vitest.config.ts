/** The suites: `npm test`, `npm run test:system`, `npm run proof`. Without `--project`, vitest runs `test` alone. */
import { defineConfig, type ViteUserConfig } from 'vitest/config'
import { PATIENCE_MS } from './test/support/patience.js'
import { hasPostgres } from './test/support/postgres-server.js'

const TEN_MINUTES_MS = 600_000

const COMMON = {
  setupFiles: ['./test/support/setup/each-file.ts'],
  // Otherwise `import style from './page.css?raw'` is an empty text.
  css: true,
  // Variables that a test sets are set back after it.
  unstubEnvs: true,
  // Only prevents endless waiting: even a slow machine must not reach it.
  testTimeout: TEN_MINUTES_MS,
  hookTimeout: TEN_MINUTES_MS,
  expect: { poll: { timeout: PATIENCE_MS } },
  // A worker loads each module once for all of its files.
  isolate: false,
}
const IN_MEMORY = ['./test/support/setup/build.ts', './test/support/setup/memory-folder.ts']

/** Suites of `npm test` that use the service's database; the others test HTTP, engines or clients, for which it makes no difference. */
const ON_POSTGRES = [
  'test/service/{cancel,fuzz,jobs,money,openapi-responses,outputs,processes,queue,references,refusals,roles,runs,served-models}.test.ts',
  'test/service/metrics/metrics.test.ts',
  'test/service/web/*.test.ts',
  'test/cli/{admin,run}.test.ts',
]

/** Tests with random cases, of which a proof tries more. */
const RANDOM = [
  'test/batch/{manifest,manifest-schema,matrix}.test.ts',
  'test/client/any-answer.test.ts',
  'test/download/whatever.test.ts',
  'test/service/fuzz.test.ts',
  'test/simulation/simulation.test.ts',
]

const projects: NonNullable<ViteUserConfig['test']>['projects'] = [
  {
    // What needs Node and nothing else.
    test: {
      ...COMMON,
      name: 'test',
      include: ['test/**/*.test.ts'],
      globalSetup: IN_MEMORY,
      setupFiles: [...COMMON.setupFiles, './test/support/setup/working-folder.ts'],
      // Longer than the patience of a test for an event: then the test says what it has waited for.
      testTimeout: 2 * PATIENCE_MS,
      hookTimeout: 2 * PATIENCE_MS,
      // Most of them wait for processes: on two cores one worker alone would leave half of the machine idle.
      maxWorkers: 4,
    },
  },
  {
    // What needs servers or a browser. Tests are skipped where a part is not installed.
    test: {
      ...COMMON,
      name: 'system',
      include: ['test/**/*.system.ts'],
      globalSetup: [...IN_MEMORY, './test/support/setup/missing-programs.ts'],
      maxWorkers: 4,
      sequence: { groupOrder: 1 },
    },
  },
  {
    test: {
      ...COMMON,
      name: 'postgres',
      include: hasPostgres ? ON_POSTGRES : [],
      globalSetup: [...IN_MEMORY, './test/support/setup/postgres-for-all.ts'],
      maxWorkers: 4,
      sequence: { groupOrder: 2 },
    },
  },
  {
    // Whole commands on Linux, Windows and macOS.
    test: {
      ...COMMON,
      name: 'any-system',
      include: ['test/**/*.any-system.ts'],
      globalSetup: ['./test/support/setup/build.ts'],
      sequence: { groupOrder: 3 },
    },
  },
  {
    // What needs real time, and the real disk: kill sweeps and nodes under fire. Its figures go into bench/results.md.
    test: {
      ...COMMON,
      name: 'proof',
      include: ['test/proof/**/*.proof.ts', 'test/e2e/job-kills.system.ts', ...RANDOM],
      globalSetup: ['./test/support/setup/build.ts'],
      env: { PROOF: process.env.PROOF ?? '30' },
      testTimeout: 6 * TEN_MINUTES_MS,
      fileParallelism: false,
    },
  },
]

export default defineConfig({
  test: {
    reporters: ['default', './test/support/setup/closing-line.ts'],
    projects: process.argv.some((word) => word.startsWith('--project')) ? projects : projects?.slice(0, 1),
  },
})
