/**
 * Reading and planning a large manifest whose rows use other rows: `npm run bench:plan`. Wall-clock and processor time, the
 * best of five. Prints a Markdown table.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NO_LOCK } from '../src/batch/lock/lock.js'
import { readManifest } from '../src/batch/manifest/index.js'
import { makePlan } from '../src/batch/plan/index.js'
import { safePart, unreserved } from '../src/download/file-names.js'
import { checkPlaceholders, fill } from '../src/download/target.js'
import { identityOf } from '../src/journal/identity.js'
import { MAX_BODY_BYTES } from '../src/protocol/limits.js'
import { imageTypeOf } from '../src/protocol/media.js'
import { row } from './table.js'

const ROWS = 5_000
const ROOTS = 1_000
const folder = mkdtempSync(join(tmpdir(), 'rushes-bench-'))

/** `sourceOf`: the row that a row uses. */
const manifestOf = (sourceOf: (at: number) => number | undefined): string =>
  Array.from({ length: ROWS }, (_, at) => {
    const source = sourceOf(at)
    const uses = source === undefined ? '' : `, image_urls: [row:shot-${source}]`
    return `- {name: shot-${at}, kind: image, prompt: number ${at}${uses}}\n`
  }).join('')

async function readAndPlan(text: string): Promise<void> {
  const path = join(folder, 'shots.yaml')
  const naming = { checkPlaceholders, fill, safePart, unreserved }
  const options = { path, naming, allowOutside: false, imageTypeOf, maxBodyBytes: MAX_BODY_BYTES }
  const models = { documentOf: () => undefined, settings: {} }
  const read = await readManifest({ ...options, ...models, bytes: Buffer.from(text) })
  if (!read.ok) throw new Error(read.problems[0]?.message)
  await makePlan({
    manifest: read.manifest,
    lock: NO_LOCK,
    flags: { force: false, forcePending: false, overwrite: false, resubmitUnconfirmed: false },
    models: { image: 'acme/still-1' },
    identity: identityOf,
    allowOutside: false,
    selects: () => true,
  })
}

row('5,000 rows, YAML', 'ms', 'processor, ms')
row('---', '--:', '--:')
for (const [name, sourceOf] of [
  ['without references', () => undefined],
  ['1,000 with 4 each below them', (at) => (at < ROOTS ? undefined : at % ROOTS)],
  ['one chain of 4,001', (at) => (at < ROOTS ? undefined : at - 1)],
] as const satisfies readonly (readonly [string, (at: number) => number | undefined])[]) {
  const text = manifestOf(sourceOf)
  let best = { ms: Number.POSITIVE_INFINITY, cpuMs: Number.POSITIVE_INFINITY }
  for (let time = 0; time < 5; time++) {
    const startedAt = performance.now()
    const cpu = process.cpuUsage()
    await readAndPlan(text)
    const { user, system } = process.cpuUsage(cpu)
    const ms = performance.now() - startedAt
    if (ms < best.ms) best = { ms, cpuMs: (user + system) / 1_000 }
  }
  row(name, best.ms.toFixed(0), best.cpuMs.toFixed(0))
}
rmSync(folder, { recursive: true })
