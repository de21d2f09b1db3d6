/**
 * Kills real runs with `kill -9` at chosen times, one after the other in one home. Then recovers: every accepted run
 * must exist exactly once.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { createPlace, filesBelow, type Place, rushes, serve, start } from './binary.js'
import { rowsOf } from './journal.js'
import { createRelay, type KillPoint, type Watch } from './kill-points.js'

/** Milliseconds after the start of the process, or a kill point of the run. */
export type Kill = number | KillPoint

export interface Tally {
  readonly kills: number
  /** Runs that the service had accepted before the kill. */
  accepted: number
  /** Runs that had finished before their kill. */
  late: number
  /** Accepted runs in the journal: with their id (`known`), or as `unconfirmed`. */
  known: number
  unconfirmed: number
  /** Journal rows of creates that the service never received. */
  onlyMeant: number
  /** Violations found. */
  readonly wrong: string[]
}

const PNG_END = Buffer.from('IEND')
const isWhole = (path: string): boolean => {
  const bytes = readFileSync(path)
  return bytes.indexOf(PNG_END) === bytes.length - 8
}

export async function sweep(kills: readonly Kill[]): Promise<Tally> {
  const tally: Tally = {
    kills: kills.length,
    accepted: 0,
    late: 0,
    known: 0,
    unconfirmed: 0,
    onlyMeant: 0,
    wrong: [],
  }
  let target = ''
  const relay = await createRelay(() => target)
  const service = await serve(createPlace(), ['--public-url', relay.url])
  target = service.url
  const own = createPlace()
  const place = own.with({
    RUSHES_STATE_DIR: join(own.home, 'state'),
    RUSHES_BASE_URL: relay.url,
    RUSHES_API_KEY: service.apiKey,
    RUSHES_IMAGE_MODEL: 'rushes/preview-image',
  })
  try {
    for (const [number, kill] of kills.entries()) {
      const watch = relay.watch(typeof kill === 'number' ? undefined : kill)
      const ended = await killAt(place, number, kill, watch)
      if (ended !== undefined) {
        tally.late++
        if (!ended.startsWith('exit 0')) tally.wrong.push(`run ${number} ended by itself: ${ended}`)
      }
      check(place, number, kill, watch, tally)
    }
    const watch = relay.watch(undefined)
    await recover(place, kills.length, tally)
    if (watch.creates > 0) tally.wrong.push(`${watch.creates} creates were sent after the kills`)
  } finally {
    relay.close()
  }
  return tally
}

const fileOf = (number: number): string => `fox-${number}.png`

/** Kills the program at its point. Returns its output if it ended before that point. */
async function killAt(place: Place, number: number, kill: Kill, watch: Watch): Promise<string | undefined> {
  const child = start(place, ['run', 'image', `fox ${number}`, '-o', fileOf(number)], { stdin: 'ignore' })
  await Promise.race([typeof kill === 'number' ? after(kill) : watch.reached, child.ended])
  child.kill('SIGKILL')
  const { code, stderr } = await child.ended
  return code === null || typeof kill === 'number' ? undefined : `exit ${code}: ${stderr}`
}

/** Checks the journal and the folder directly after the kill, before any recovery. */
function check(place: Place, number: number, kill: Kill, watch: Watch, tally: Tally): void {
  const at = `kill ${number} (${JSON.stringify(kill)})`
  const rows = rowsOf(place.home).filter(
    ({ input }) => (input as { prompt?: unknown }).prompt === `fox ${number}`,
  )
  const known = rows.filter(({ id }) => id !== undefined)
  const unconfirmed = rows.filter(({ phase }) => phase === 'unconfirmed')
  tally.accepted += watch.accepted.length
  tally.known += known.length
  tally.unconfirmed += watch.accepted.length - known.length
  tally.onlyMeant += unconfirmed.length - (watch.accepted.length - known.length)
  if (watch.creates > 1) tally.wrong.push(`${at}: ${watch.creates} creates`)
  if (watch.creates > rows.length) tally.wrong.push(`${at}: a create came in and the journal has no row`)
  if (known.some(({ id }) => !watch.accepted.includes(id ?? ''))) tally.wrong.push(`${at}: a strange id`)
  if (watch.accepted.length > known.length + unconfirmed.length)
    tally.wrong.push(`${at}: an accepted run is lost`)
  const path = join(place.folder, fileOf(number))
  if (existsSync(path) && !isWhole(path)) tally.wrong.push(`${at}: a broken file`)
}

/**
 * Recovers like a user: waits for running runs, and downloads finished ones. A killed download may leave its hidden
 * part, as the docs say. The commands after it leave nothing.
 */
async function recover(place: Place, kills: number, tally: Tally): Promise<void> {
  const leftByKills = others(place.folder)
  const strange = leftByKills.filter((name) => !/^\.fox-\d+\.png\.[0-9a-f]{12}\.part$/.test(name))
  const parts = new Set(leftByKills.map((name) => name.split('.').slice(0, 3).join('.')))
  if (strange.length > 0 || parts.size < leftByKills.length)
    tally.wrong.push(`left by the kills: ${leftByKills.join(', ')}`)
  const waited = await rushes(place, ['wait', '--all'])
  if (waited.code !== 0) tally.wrong.push(`wait --all: exit ${waited.code}: ${waited.stderr}`)
  const rows = rowsOf(place.home)
  for (let number = 0; number < kills; number++) {
    const row = rows.find(
      ({ id, input }) => id !== undefined && (input as { prompt?: unknown }).prompt === `fox ${number}`,
    )
    const path = join(place.folder, fileOf(number))
    if (row?.id === undefined || existsSync(path)) continue
    const { code, stderr } = await rushes(place, ['download', row.id, '-o', fileOf(number), '--debug'])
    if (code !== 0 || !isWhole(path)) tally.wrong.push(`download of fox ${number}: exit ${code}: ${stderr}`)
  }
  const debris = others(place.folder).filter((name) => !leftByKills.includes(name))
  if (debris.length > 0) tally.wrong.push(`left by later commands: ${debris.join(', ')}`)
}

/** The files that are no results. */
const others = (folder: string): string[] => filesBelow(folder).filter((name) => !/^fox-\d+\.png$/.test(name))

export const tallyLine = ({ kills, late, accepted, known, unconfirmed, onlyMeant, wrong }: Tally): string =>
  `${kills} kills${late > 0 ? ` (${late} too late)` : ''}: ${accepted} runs accepted, ${known} in the journal with their id, ${unconfirmed} as unconfirmed, ` +
  `${onlyMeant} more rows for creates that never left; ${wrong.length} lost, paid twice or broken`
