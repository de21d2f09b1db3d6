/**
 * Batches in real time, at the local service on a port: `npm run bench:batch` (four minutes). The same ways as in simulated time
 * (`schedule.ts`), and `rushes batch` as a whole process, all on the same runs; then how long a manifest of 1,000 rows takes to
 * be validated and planned. Prints Markdown tables.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { systemClock } from '../src/host/clock.js'
import { createLimiter } from '../src/limiter/index.js'
import { RUNS_LIMIT } from '../src/protocol/limits.js'
import { median, row } from './table.js'
import { floorOf, ours, plainQueue, random, tenInFlight, type Way, type World } from './ways.js'

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
  const words = [
    'serve',
    '--port',
    '0',
    '--json',
    '--data',
    data,
    '--concurrency',
    '64',
    '--engine',
    `image=${ENGINE}`,
  ]
  const child = spawn(process.execPath, [BINARY, ...words], { env, stdio: ['ignore', 'pipe', 'inherit'] })
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

/** Where the runs are those of the service, and the limit is kept by the real limiter. */
function createRealWorld(url: string, key: string, durations: readonly number[]) {
  const limiter = createLimiter(RUNS_LIMIT, systemClock)
  const ids = new Map<number, string>()
  const delays: number[] = []
  const counts = { requests: 0, turnedAway: 0 }

  async function ask(purpose: 'create' | 'status', path: string, body?: object) {
    const grant = await limiter.acquire(purpose)
    counts.requests++
    const answer = await fetch(`${url}/api/v1/runs${path}`, {
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    })
    grant.settle()
    if (answer.status === 429) counts.turnedAway++
    return (await answer.json()) as { id: string; status: string; finished_at: string }
  }

  const world: World = {
    clock: systemClock,
    async create(run) {
      const input = { prompt: String((durations[run] ?? 0) / 1_000) }
      ids.set(run, (await ask('create', '', { model: 'rushes/preview-image', input })).id)
    },
    async poll(run, isUrgent = false) {
      const { status, finished_at } = await ask(isUrgent ? 'create' : 'status', `/${ids.get(run)}`)
      if (status !== 'succeeded') return false
      delays.push(Date.now() - Date.parse(finished_at))
      return true
    },
    durationMs: (run) => durations[run] ?? 0,
    load: limiter.load,
  }
  return { world, counts, delays }
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, each) => sum + each, 0) / values.length

async function realTime(): Promise<void> {
  const durations = Array.from({ length: RUNS }, () => 3_000 + random() * 9_000)
  const floor = floorOf(durations)
  row('runs', 'way', 'seconds', 'of the floor', 'requests', '429s', 'done to noticed, s')
  row('--:', '---', '--:', '--:', '--:', '--:', '--:')
  const ways: readonly (readonly [string, Way])[] = [
    ['the scheduler of rushes', ours()],
    ['ten in flight, every 1.5 s', tenInFlight],
    ['a plain queue before the limiter', plainQueue],
  ]
  for (const [name, way] of ways) {
    const service = await startService()
    const { world, counts, delays } = createRealWorld(service.url, service.key, durations)
    const began = performance.now()
    await way(world, RUNS)
    const seconds = (performance.now() - began) / 1_000
    await service.end()
    const { requests, turnedAway } = counts
    row(
      RUNS,
      name,
      seconds.toFixed(1),
      (seconds / floor).toFixed(3),
      requests,
      turnedAway,
      (mean(delays) / 1_000).toFixed(2),
    )
  }
  const service = await startService()
  const manifest = join(home, 'shots.json')
  const rows = durations.map((ms, at) => ({ name: `shot-${at}`, kind: 'image', prompt: String(ms / 1_000) }))
  writeFileSync(manifest, JSON.stringify({ models: { image: 'rushes/preview-image' }, runs: rows }))
  const began = performance.now()
  const batch = spawn(process.execPath, [BINARY, 'batch', manifest, '--json', '--debug'], {
    env: { ...env, RUSHES_BASE_URL: service.url, RUSHES_API_KEY: service.key },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  batch.stderr.on('data', (chunk) => {
    said += chunk
  })
  batch.stdout.resume()
  const [code] = await once(batch, 'exit')
  const seconds = (performance.now() - began) / 1_000
  await service.end()
  const requests = said.match(/"> (POST|GET) [^"]*\/api\/v1\/runs/g)?.length ?? 0
  const turnedAway = said.match(/< 429/g)?.length ?? 0
  if (code !== 0) throw new Error(`the batch ended with ${code}: ${said.slice(-500)}`)
  row(
    RUNS,
    'rushes batch, files included',
    seconds.toFixed(1),
    (seconds / floor).toFixed(3),
    requests,
    turnedAway,
    '',
  )
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
