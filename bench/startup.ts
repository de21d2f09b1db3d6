/**
 * Start-up as ratios to bare Node, in one run, since machines are noisy: `npm run bench:startup`. The commands take
 * turns, each ROUNDS times; medians are compared. Prints a Markdown table.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const ROUNDS = 20
const BINARY = resolve('bin/rushes.js')
const home = mkdtempSync(join(tmpdir(), 'rushes-startup-'))

const CASES: readonly (readonly [string, readonly string[]])[] = [
  ['node -e 0', ['-e', '0']],
  ['--version', [BINARY, '--version']],
  ['--help', [BINARY, '--help']],
  ['run image --help', [BINARY, 'run', 'image', '--help']],
  ['a usage error', [BINARY, 'run', 'image', '--no-such-flag']],
  ['run image --dry-run', [BINARY, 'run', 'image', 'a fox', '--dry-run', '--model', 'acme/still-1']],
  ['models', [BINARY, 'models']],
]

const times = new Map<string, number[]>(CASES.map(([name]) => [name, []]))
for (let round = 0; round <= ROUNDS; round++)
  for (const [name, argv] of CASES) {
    const started = performance.now()
    spawnSync(process.execPath, argv, { env: { PATH: process.env.PATH, HOME: home } })
    // The first round warms the disk's cache.
    if (round > 0) times.get(name)?.push(performance.now() - started)
  }
rmSync(home, { recursive: true, force: true })

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
const bare = median(times.get('node -e 0') ?? [])
console.log('| command | median ms | bare Node = 1 |\n|---|--:|--:|')
for (const [name, values] of times)
  console.log(`| ${name} | ${median(values).toFixed(0)} | ${(median(values) / bare).toFixed(2)} |`)
