/** A manifest with a character sheet, two poses made from it and a video of one pose, run against the service. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import type { JournalRun } from '../../src/journal/index.js'
import {
  type CliService,
  type CommandLine,
  createCliService,
  createsIn,
  type RunAtService,
  wordsOf,
} from './cli.js'
import { createFamilyEngine } from './engines.js'
import { withJournal } from './journal.js'
import { temporaryFolder } from './temporary-folder.js'

export interface Row {
  readonly name: string
  readonly prompt: string
  readonly [field: string]: unknown
}

export const SHEET = { name: 'sheet', prompt: 'a fox, character sheet' }
export const RUN = { name: 'run', prompt: 'the fox runs', image_urls: ['row:sheet'] }
export const SIT = { name: 'sit', prompt: 'the fox sits', image_urls: ['row:sheet'] }
export const CLIP = { name: 'clip', kind: 'video', prompt: 'it runs away', image_urls: ['row:run'] }
export const FAMILY: readonly Row[] = [CLIP, RUN, SIT, SHEET]

export async function createFamily(
  rows: readonly Row[] = FAMILY,
  { outputs, ...options }: Parameters<typeof createCliService>[0] & { readonly outputs?: number } = {},
) {
  const engine = createFamilyEngine(outputs === undefined ? {} : { outputs })
  const service = await createCliService({ engine, ...options })
  const folder = temporaryFolder()
  const manifest = join(folder, 'shots.json')
  const write = (next: readonly Row[]) =>
    writeFileSync(manifest, JSON.stringify({ defaults: { kind: 'image' }, runs: next }))
  write(rows)
  const lockPath = join(folder, 'shots.lock.json')
  const path = (name: string) => join(folder, name)
  return {
    service,
    engine,
    folder,
    manifest,
    lockPath,
    path,
    write,
    /** Returns the runs of the lock file. Undefined if it does not exist yet. */
    lock: () => (existsSync(lockPath) ? JSON.parse(readFileSync(lockPath, 'utf8')).runs : undefined),
    editLock: (edit: (runs: Record<string, Record<string, unknown>>) => void) => {
      const lock = JSON.parse(readFileSync(lockPath, 'utf8'))
      edit(lock.runs)
      writeFileSync(lockPath, JSON.stringify(lock))
    },
    /** Returns what the journal has in flight, by the name of the row. */
    flights: (): Readonly<Record<string, JournalRun>> =>
      withJournal(service.home, (journal) => {
        const found = journal.inFlight({ id: '', lockPath: join(realpathSync(folder), 'shots.lock.json') })
        return Object.fromEntries(found.map((run) => [run.entry, run]).reverse())
      }),
    /** Changes rows of the journal. */
    editJournal(sql: string, ...values: readonly (string | number)[]) {
      const database = new Database(join(service.home, 'state', 'journal.db'))
      database.prepare(sql).run(...values)
      database.close()
    },
    /** Returns the images below the folder. */
    pictures: () =>
      readdirSync(folder, { recursive: true })
        .map(String)
        .filter((name) => name.endsWith('.png'))
        .sort(),
    /** Returns the prompts of the creates since the last call, in order. */
    created: () => {
      const sent = createsIn(service.requests.splice(0))
      return sent.map(({ input }) => String(input.prompt))
    },
    run: (words: CommandLine = [], runOptions: RunAtService = {}) =>
      service.run(['batch', manifest, ...wordsOf(words)], runOptions),
  }
}

interface Body {
  readonly input: { readonly prompt: string }
}
export const bodyOf = (body: Uint8Array | undefined): Body => JSON.parse(Buffer.from(body ?? []).toString())

export const imagesSentFor = ({ requests }: CliService, prompt: string): readonly string[] =>
  createsIn(requests)
    .filter(({ input }) => input.prompt === prompt)
    .flatMap(({ input }) => (input.image_urls ?? []) as readonly string[])

export const sha256 = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex')
