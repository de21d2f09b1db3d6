/**
 * Start-up as ratios to bare Node, in one run, since machines are noisy: `npm run bench:startup`. The commands take
 * turns, each ROUNDS times; medians are compared. Prints a Markdown table.
 *
 * They get PATH and HOME and nothing else; with `-- environment`, all that the shell has. That is another measure: Node reads
 * what NODE_EXTRA_CA_CERTS names before it does anything, and takes more than twice as long to start.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { openJournal } from '../src/journal/index.js'
import { median } from './table.js'

const ROUNDS = 20
/** Of two questions each, and one before them: within what a key may ask in 10 s. */
const ROUNDS_OF_A_KEY = 9
const BINARY = resolve('bin/rushes.cjs')
const home = mkdtempSync(join(tmpdir(), 'rushes-startup-'))

const STATE = join(home, '.local', 'state', 'rushes')

/** A service on loopback, asked for a run that it does not have: one whole exchange. */
const service = spawn(process.execPath, [BINARY, 'serve', '--port', '0', '--json'], {
  env: { PATH: process.env.PATH, HOME: home },
  stdio: ['ignore', 'pipe', 'inherit'],
})
const [announced] = await once(service.stdout, 'data')
const { url } = JSON.parse(String(announced))
const surroundings = process.argv[2] === 'environment' ? process.env : { PATH: process.env.PATH }

const DRY_RUN = [BINARY, 'run', 'image', 'a fox', '--dry-run', '--model', 'acme/still-1']
const STATUS = [BINARY, 'status', 'run_none', '--base-url', url]
/** Of commands that find nothing compiled, as on a new machine. */
const FIRST = ', the first time'

const CASES: readonly (readonly [string, readonly string[]])[] = [
  ['node -e 0', ['-e', '0']],
  ['--version', [BINARY, '--version']],
  ['--help', [BINARY, '--help']],
  ['run image --help', [BINARY, 'run', 'image', '--help']],
  ['a usage error', [BINARY, 'run', 'image', '--no-such-flag']],
  ['run image --dry-run', DRY_RUN],
  [`run image --dry-run${FIRST}`, DRY_RUN],
  ['models', [BINARY, 'models']],
  ['completion of a flag', [BINARY, '__complete', 'run', 'image', '--qua']],
  ['completion of an id', [BINARY, '__complete', 'wait', '']],
  ['status of a run on loopback', STATUS],
  [`status of a run on loopback${FIRST}`, STATUS],
]

/** A journal of as many runs as completion reads. */
const journal = openJournal({
  path: join(STATE, 'journal.db'),
  now: () => Date.now(),
  onQuarantine() {},
})
for (let at = 0; at < 1_000; at++) {
  const row = journal.intend({
    address: url,
    profile: 'default',
    kind: 'image',
    model: 'acme/still-1',
    input: { prompt: `fox ${at}` },
  })
  journal.accept(row, `run_${at}`, 'queued')
}
journal.close()

/** A key that has asked nothing yet, in a state folder where that is known: nobody waits for the limit. */
function rested(): NodeJS.ProcessEnv {
  const state = mkdtempSync(join(home, 'state-'))
  for (const name of readdirSync(STATE).filter((each) => each.startsWith('journal.db')))
    copyFileSync(join(STATE, name), join(state, name))
  const words = ['admin', 'key', 'create', '--account', 'default', '--json']
  const { stdout } = spawnSync(process.execPath, [BINARY, ...words], {
    env: { PATH: process.env.PATH, HOME: home },
    encoding: 'utf8',
  })
  const env = { RUSHES_STATE_DIR: state, RUSHES_API_KEY: JSON.parse(stdout).api_key }
  spawnSync(process.execPath, STATUS, { env: { ...surroundings, HOME: home, ...env } })
  return env
}

const times = new Map<string, number[]>(CASES.map(([name]) => [name, []]))
let own: NodeJS.ProcessEnv = {}
for (let round = 0; round <= ROUNDS; round++) {
  if (round % ROUNDS_OF_A_KEY === 0) own = rested()
  for (const [name, argv] of CASES) {
    const cache = name.endsWith(FIRST) ? mkdtempSync(join(home, 'first-')) : join(home, 'cache')
    const env = { ...surroundings, HOME: home, XDG_CACHE_HOME: cache, ...own }
    const started = performance.now()
    spawnSync(process.execPath, argv, { env })
    // The first round warms the disk's cache.
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
