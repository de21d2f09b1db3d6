/**
 * Start-up as ratios to bare Node: `npm run bench -- startup`. The commands run in turns, ROUNDS times each, and medians are
 * compared, so that a noisy machine affects all alike. Prints a Markdown table.
 *
 * The commands get PATH and HOME alone; with `-- environment`, all variables of the shell: where NODE_EXTRA_CA_CERTS is set,
 * bare Node takes more than twice as long to start.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type IntentRow, Journal } from '../src/journal/index.js'
import { median } from './table.js'

const ROUNDS = 20
/** A round sends one request: stays below the limit of 20 requests in 10 s for a key. */
const ROUNDS_PER_KEY = 18
const BINARY = resolve('bin/rushes.cjs')
const home = mkdtempSync(join(tmpdir(), 'rushes-startup-'))

const STATE = join(home, '.local', 'state', 'rushes')

/** A service on loopback. `status` asks it for a run that does not exist: one complete exchange. */
const service = spawn(process.execPath, [BINARY, 'serve', '--port', '0', '--json'], {
  env: { PATH: process.env.PATH, HOME: home },
  stdio: ['ignore', 'pipe', 'inherit'],
})
const [announced] = await once(service.stdout, 'data')
const { url } = JSON.parse(String(announced))
const variables = process.argv[2] === 'environment' ? process.env : { PATH: process.env.PATH }

const DRY_RUN = [BINARY, 'run', 'image', 'a fox', '--dry-run', '--model', 'acme/still-1']
const STATUS = [BINARY, 'status', 'run_none', '--base-url', url]

const CASES: readonly (readonly [string, readonly string[]])[] = [
  ['node -e 0', ['-e', '0']],
  ['--version', [BINARY, '--version']],
  ['--help', [BINARY, '--help']],
  ['run image --help', [BINARY, 'run', 'image', '--help']],
  ['a usage error', [BINARY, 'run', 'image', '--no-such-flag']],
  ['run image --dry-run', DRY_RUN],
  ['models', [BINARY, 'models']],
  ['completion bash', [BINARY, 'completion', 'bash']],
  ['status of a run on loopback', STATUS],
]

/** A journal with many runs. */
const journal = new Journal({
  folder: STATE,
  now: () => Date.now(),
  warn() {},
})
for (let at = 0; at < 1_000; at++) {
  const row = journal.intend('best effort', {
    address: url,
    profile: 'default',
    kind: 'image',
    model: 'acme/still-1',
    input: { prompt: `fox ${at}` },
  })
  journal.accepted(row as IntentRow, { id: `run_${at}`, status: 'queued' })
}
journal.close()

/** A new key with a state folder of its own, so that no command waits for the rate limit. */
function createKey(): NodeJS.ProcessEnv {
  const state = mkdtempSync(join(home, 'state-'))
  for (const name of readdirSync(STATE).filter((each) => each.startsWith('journal.db')))
    copyFileSync(join(STATE, name), join(state, name))
  const words = ['admin', 'key', 'create', '--account', 'default', '--json']
  const { stdout } = spawnSync(process.execPath, [BINARY, ...words], {
    env: { PATH: process.env.PATH, HOME: home },
    encoding: 'utf8',
  })
  const env = { RUSHES_STATE_DIR: state, RUSHES_API_KEY: JSON.parse(stdout).api_key }
  spawnSync(process.execPath, STATUS, { env: { ...variables, HOME: home, ...env } })
  return env
}

const times = new Map<string, number[]>(CASES.map(([name]) => [name, []]))
let keyVariables: NodeJS.ProcessEnv = {}
for (let round = 0; round <= ROUNDS; round++) {
  if (round % ROUNDS_PER_KEY === 0) keyVariables = createKey()
  for (const [name, argv] of CASES) {
    // Node 22.8 and later keep compiled code there.
    const env = { ...variables, HOME: home, TMPDIR: home, ...keyVariables }
    const started = performance.now()
    spawnSync(process.execPath, argv, { env })
    // The first round fills the caches.
    if (round > 0) times.get(name)?.push(performance.now() - started)
  }
}
service.kill('SIGTERM')
await once(service, 'exit')
rmSync(home, { recursive: true, force: true })

const bare = median(times.get('node -e 0') ?? [])
console.log('| command | median ms | bare Node = 1 |\n|---|--:|--:|')
for (const [name, values] of times)
  console.log(`| ${name} | ${median(values).toFixed(0)} | ${(median(values) / bare).toFixed(2)} |`)
