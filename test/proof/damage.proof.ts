/** A damaged journal that several processes meet at once, as a batch job in parallel would: one sets it aside, all go on. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { built } from '../support/built.js'

const ROUNDS = 75
const PROCESSES = 4
const RUNS_EACH = 10

let writer: string
beforeAll(async () => {
  writer = await built(new URL('./journal-writer.ts', import.meta.url))
})

async function write(state: string, name: string): Promise<unknown> {
  const child = spawn(process.execPath, [writer, state, name, String(RUNS_EACH)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return (await once(child, 'exit'))[0]
}

/** A first page that says that all is well, and noise behind it: the damage shows only when something is read. */
async function noise(folder: string): Promise<Buffer> {
  const path = join(folder, 'journal.db')
  expect(await write(folder, 'early')).toBe(0)
  const bytes = readFileSync(path)
  return Buffer.concat([bytes.subarray(0, 4_096), Buffer.alloc(bytes.length - 4_096, 'noise')])
}

async function cut(folder: string): Promise<Buffer> {
  expect(await write(folder, 'early')).toBe(0)
  const bytes = readFileSync(join(folder, 'journal.db'))
  return bytes.subarray(0, bytes.length - 1_000)
}

describe.each([
  ['that is no database', async () => Buffer.from('no database at all, and long enough'.repeat(300))],
  ['whose pages are noise', noise],
  ['that is empty', async () => Buffer.alloc(0)],
  ['that has lost its last 1,000 bytes', cut],
])('a journal %s', (name, damage) => {
  it('goes to quarantine once, without losing later writes', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rushes-proof-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const seed = join(folder, 'seed')
    mkdirSync(seed)
    const bytes = await damage(seed)
    let [kept, aside] = [0, 0]
    for (let round = 0; round < ROUNDS; round++) {
      const state = join(folder, `state-${round}`)
      mkdirSync(state)
      writeFileSync(join(state, 'journal.db'), bytes)
      const codes = await Promise.all(Array.from({ length: PROCESSES }, (_, at) => write(state, `p${at}`)))
      expect(codes).toEqual(Array.from({ length: PROCESSES }, () => 0))
      const database = new Database(join(state, 'journal.db'))
      expect(database.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }])
      const [row] = database.prepare(`SELECT count(DISTINCT id) AS ids FROM runs WHERE phase = 'going'`).all()
      database.close()
      kept += (row as { ids: number }).ids
      aside += readdirSync(state).filter((each) => /damaged-[^-]+-\d+$/.test(each)).length
    }
    const written = ROUNDS * PROCESSES * RUNS_EACH
    process.stdout.write(
      `${name}: ${ROUNDS} times ${PROCESSES} processes: ${written} runs written, ${kept} in the journal, set aside ${aside} times\n`,
    )
    expect({ kept, aside }).toEqual({ kept: written, aside: ROUNDS })
  })
})
