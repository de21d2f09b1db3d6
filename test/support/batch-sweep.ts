/**
 * Kills a batch with `kill -9` at chosen times and then runs it again: each row must be complete or reported as
 * unconfirmed, and never paid twice.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { createPlace, filesBelow, rushes, type Service, serve, start } from './binary.js'
import { ONE_PIXEL_PNG } from './engines.js'
import { withJournal } from './journal.js'
import { runSql } from './test-database.js'

/** For each row, the index of the row that it uses. */
export type Family = readonly (number | undefined)[]

export interface SweepOptions {
  readonly family?: Family
  /** Number of outputs of each run. If set, the outputs in the manifest have no extension. */
  readonly outputs?: 1 | 2
  /** Whether all rows have the same input, so that only the tokens of their creates differ. */
  readonly isOneInput?: boolean
}

export const FOUR_PICTURES: Family = [undefined, undefined, undefined, undefined]
/** One image, two images made from it, and one from each of those two. */
export const THREE_LEVELS: Family = [undefined, 0, 0, 1, 2]

const PNG_END = Buffer.from('IEND')

export interface BatchTally {
  kills: number
  /** Rows that were complete after the second batch. */
  whole: number
  /** Rows that the second batch reported as unconfirmed. */
  unconfirmed: number
  /** Rows that the second batch reported as blocked by an unconfirmed row. */
  blocked: number
  /** Batches that had finished before they were killed. */
  late: number
  readonly wrong: string[]
}

/** Writes two images after a short delay. */
const TWO_OUTPUTS = `sleep 0.1; for n in 1 2; do echo "${ONE_PIXEL_PNG.toString('base64')}" | base64 -d > "$RUSHES_OUTPUT_DIR/$n.png"; done`

export async function sweepBatches(
  instantsMs: readonly number[],
  { family = FOUR_PICTURES, outputs = 1, isOneInput = false }: SweepOptions = {},
): Promise<BatchTally> {
  const tally: BatchTally = { kills: 0, whole: 0, unconfirmed: 0, blocked: 0, late: 0, wrong: [] }
  const service = await serve(createPlace(), outputs === 1 ? [] : ['--engine', `image=${TWO_OUTPUTS}`])
  for (const instantMs of instantsMs)
    await killOne(service, { instantMs, family, outputs, isOneInput }, tally)
  return tally
}

async function killOne(
  service: Service,
  { instantMs, family, outputs, isOneInput }: Required<SweepOptions> & { readonly instantMs: number },
  tally: BatchTally,
): Promise<void> {
  const at = `killed after ${instantMs} ms`
  const name = `kill-${instantMs}`
  const promptOf = (row: number) => (isOneInput ? name : `${name} ${row}`)
  const folder = join(service.folder, name)
  mkdirSync(folder)
  const runs = family.map((source, row) => ({
    name: `row-${row}`,
    prompt: promptOf(row),
    output: `out/${row}.${outputs === 1 ? 'png' : '{ext}'}`,
    ...(source !== undefined && { image_urls: [`row:row-${source}`] }),
  }))
  writeFileSync(join(folder, 'shots.json'), JSON.stringify({ defaults: { kind: 'image' }, runs }))
  const place = { ...service, folder }
  const killed = start(place, ['batch', 'shots.json', '-q'], { stdin: 'ignore' })
  await Promise.race([after(instantMs), killed.ended])
  killed.kill('SIGKILL')
  tally.kills++
  if ((await killed.ended).code === 0) tally.late++
  const broken = filesBelow(folder).filter(
    (file) => /^out\/\d(-2)?\.png$/.test(file) && !isWhole(join(folder, file)),
  )
  if (broken.length > 0) tally.wrong.push(`${at}: broken ${broken.join(', ')}`)

  const second = await rushes(place, ['batch', 'shots.json'])
  const lock = existsSync(join(folder, 'shots.lock.json'))
    ? JSON.parse(readFileSync(join(folder, 'shots.lock.json'), 'utf8')).runs
    : {}
  const unknown = unconfirmedRows(service, join(folder, 'shots.lock.json'))
  for (const [row, source] of family.entries()) {
    const entry = lock[`row-${row}`] ?? {}
    const path = join(folder, 'out', `${row}.png`)
    const paid = await acceptedFor(service, promptOf(row))
    if (paid > 1 && !isOneInput) tally.wrong.push(`${at}: row ${row} was paid ${paid} times`)
    if (unknown.has(`row-${row}`)) {
      tally.unconfirmed++
      if (!new RegExp(`row-${row}\\b`).test(second.stderr))
        tally.wrong.push(`${at}: row ${row} is unconfirmed and was not named`)
    } else if (existsSync(path) && isWhole(path) && entry.sha256 !== undefined) {
      tally.whole++
      const second = join(folder, 'out', `${row}-2.png`)
      if (outputs === 2 && !(existsSync(second) && isWhole(second) && entry.outputs?.length === 1))
        tally.wrong.push(`${at}: row ${row} has no second output`)
      const used = source === undefined ? undefined : lock[`row-${source}`]?.sha256
      if (used !== undefined && entry.inputs?.[`row:row-${source}`] !== used.slice(0, 8))
        tally.wrong.push(`${at}: row ${row} was made from another output than the one of row ${source}`)
    } else if (second.code === 13 && paid === 0 && second.stderr.includes(`row-${row}`)) tally.blocked++
    else
      tally.wrong.push(
        `${at}: row ${row} is neither there nor unconfirmed: exit ${second.code}: ${second.stderr}`,
      )
  }
  const entries = Object.values(lock as Readonly<Record<string, Entry>>)
  const unconfirmed = unknown.size
  const known = entries.flatMap(({ run }) => run ?? [])
  if (new Set(known).size < known.length) tally.wrong.push(`${at}: two rows have one run`)
  if (isOneInput) {
    const paid = await acceptedFor(service, name)
    if (paid < known.length || paid > known.length + unconfirmed)
      tally.wrong.push(
        `${at}: ${paid} runs paid for, ${known.length} in the lock file, ${unconfirmed} unconfirmed`,
      )
  }
  const expected = unconfirmed > 0 ? 13 : 0
  if (second.code !== expected)
    tally.wrong.push(`${at}: the second batch is exit ${second.code} in place of ${expected}`)
  const third = await rushes(place, ['batch', 'shots.json'])
  if (third.code !== expected)
    tally.wrong.push(`${at}: the third batch is exit ${third.code} in place of ${expected}`)
  const debris = filesBelow(folder).filter((file) => /(^|\/)\./.test(file))
  if (debris.length > 0) tally.wrong.push(`${at}: left behind ${debris.join(', ')}`)
}

interface Entry {
  readonly run?: string
}

/** Returns the rows of the manifest whose create has an unknown outcome. */
const unconfirmedRows = ({ home }: Service, lockPath: string): ReadonlySet<string | undefined> => {
  const flights = withJournal(
    home,
    (journal) => journal.inFlight({ id: '', lockPath }),
    join(home, '.local', 'state', 'rushes'),
  )
  return new Set(flights.filter(({ id }) => id === undefined).map(({ entry }) => entry))
}

const isWhole = (path: string): boolean => {
  const bytes = readFileSync(path)
  return bytes.indexOf(PNG_END) === bytes.length - 8
}

/** Returns the number of creates that the service accepted and charged. */
async function acceptedFor({ data, env }: Service, prompt: string): Promise<number> {
  const place = { dataFolder: data, databaseUrl: env.RUSHES_DATABASE_URL }
  const rows = await runSql(place, 'SELECT prompt FROM runs')
  return rows.filter((row) => row.prompt === prompt).length
}
