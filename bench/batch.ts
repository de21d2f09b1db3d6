/**
 * `rushes batch` as a whole process at the local service on a port: `npm run bench:batch` (one minute). How near it comes to the
 * floor of its requests, files included; then how long a manifest of 1,000 rows takes to be validated and planned. Prints
 * Markdown tables. Simulated time and other ways: `schedule.ts`.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { median, row } from './table.js'
import { floorOf, random } from './ways.js'

const RUNS = 40
const ROWS = 1_000
const ROUNDS = 9
const BINARY = resolve('bin/rushes.cjs')
/** Sleeps as many seconds as the prompt says. */
const ENGINE = `s=$(sed 's/.*"prompt":"\\([0-9.]*\\).*/\\1/'); sleep "$s"; echo "$s" > "$RUSHES_OUTPUT_DIR/slept.txt"`

const home = mkdtempSync(join(tmpdir(), 'rushes-batch-'))
const env = { PATH: process.env.PATH, HOME: home }
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function startService(): Promise<{ readonly url: string; readonly key: string; end(): Promise<void> }> {
  const data = mkdtempSync(join(home, 'data-'))
  const flags = ['--data', data, '--concurrency', '64', '--engine', `image=${ENGINE}`]
  const child = spawn(process.execPath, [BINARY, 'serve', '--port', '0', '--json', ...flags], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(child.stdout, 'data')
  const { url, api_key: key } = JSON.parse(String(line))
  return {
    url,
    key,
    async end() {
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

async function realTime(): Promise<void> {
  const durations = Array.from({ length: RUNS }, () => 3_000 + random() * 9_000)
  const floor = floorOf(durations)
  row('runs', 'seconds', 'of the floor', 'requests', '429s')
  row('--:', '--:', '--:', '--:', '--:')
  const service = await startService()
  const manifest = join(home, 'shots.json')
  const rows = durations.map((ms, at) => ({ name: `shot-${at}`, kind: 'image', prompt: String(ms / 1_000) }))
  writeFileSync(manifest, JSON.stringify({ models: { image: 'rushes/preview-image' }, runs: rows }))
  const began = performance.now()
  const batch = spawn(process.execPath, [BINARY, 'batch', manifest, '--json', '--debug'], {
    env: { ...env, RUSHES_BASE_URL: service.url, RUSHES_API_KEY: service.key },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let log = ''
  batch.stderr.on('data', (chunk) => {
    log += chunk
  })
  batch.stdout.resume()
  const [code] = await once(batch, 'exit')
  const seconds = (performance.now() - began) / 1_000
  await service.end()
  const requests = log.match(/"> (POST|GET) [^"]*\/api\/v1\/runs/g)?.length ?? 0
  const turnedAway = log.match(/< 429/g)?.length ?? 0
  if (code !== 0) throw new Error(`the batch ended with ${code}: ${log.slice(-500)}`)
  row(RUNS, seconds.toFixed(1), (seconds / floor).toFixed(3), requests, turnedAway)
}

/** `--dry-run` reads, validates, hashes and plans everything, and sends nothing. */
function planning(): void {
  const prompts = Array.from(
    { length: ROWS },
    (_, at) => `a fox number ${at}, in fresh snow, at dawn, long shadows`,
  )
  const yaml = `models: { image: acme/still-1 }\ndefaults: { kind: image }\nruns:\n${prompts
    .map(
      (prompt, at) =>
        `  - name: fox-${at}\n    prompt: ${prompt}\n    aspect_ratio: "16:9"\n    output: foxes/${at}.png\n`,
    )
    .join('')}`
  const json = JSON.stringify({
    models: { image: 'acme/still-1' },
    runs: prompts.map((prompt, at) => ({ name: `fox-${at}`, kind: 'image', prompt })),
  })
  const files = {
    'big.yaml': yaml,
    'big.json': json,
    'one.yaml': `${yaml.split('\n').slice(0, 7).join('\n')}\n`,
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(home, name), text)
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ['node -e 0', ['-e', '0']],
    ['1 row, YAML', [BINARY, 'batch', join(home, 'one.yaml'), '--dry-run']],
    [`${ROWS} rows, YAML`, [BINARY, 'batch', join(home, 'big.yaml'), '--dry-run']],
    [`${ROWS} rows, JSON`, [BINARY, 'batch', join(home, 'big.json'), '--dry-run']],
  ]
  const times = new Map<string, number[]>(cases.map(([name]) => [name, []]))
  for (let round = 0; round <= ROUNDS; round++)
    for (const [name, words] of cases) {
      const began = performance.now()
      const { status } = spawnSync(process.execPath, words, { env, stdio: 'ignore' })
      if (status !== 0) throw new Error(`${name} ended with ${status}`)
      if (round > 0) times.get(name)?.push(performance.now() - began)
    }
  row('plan', 'median ms', 'bare Node = 1')
  row('---', '--:', '--:')
  const bare = median(times.get('node -e 0') ?? [])
  for (const [name, ms] of times) row(name, median(ms).toFixed(0), (median(ms) / bare).toFixed(2))
}

const wanted = process.argv[2]
try {
  if (wanted !== 'plan') await realTime()
  if (wanted === undefined) console.log()
  if (wanted !== 'real') planning()
} finally {
  // The last service may still be writing.
  await sleep(100)
  rmSync(home, { recursive: true, force: true })
}
