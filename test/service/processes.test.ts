/** What only real processes show: starting at once, dying without a word, and Ctrl-C for a whole group. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/host/clock.js'
import { openAdministration } from '../../src/service/admin.js'
import { built } from '../support/built.js'
import { createTestService, ended, temporaryFolder, until } from '../support/index.js'
import { databaseUrlOf, openStoreOf, usesPostgres } from '../support/test-database.js'

let program: string
let renderer: string
beforeAll(async () => {
  program = await built(new URL('./service-process.ts', import.meta.url))
  renderer = await built(new URL('./engines/odd-renderer.ts', import.meta.url))
})

async function start(data: string, ...args: string[]) {
  const databaseUrl = await databaseUrlOf(data)
  const child = spawn(process.execPath, [program, data, ...args], {
    env: { ...process.env, ...(databaseUrl !== undefined && { RUSHES_DATABASE_URL: databaseUrl }) },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const said: Record<string, unknown>[] = []
  const hear = new Set<() => void>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    said.push(JSON.parse(line))
    for (const wake of hear) wake()
  })
  return {
    child,
    /** The first line that names this key; its value. */
    prints: (key: string) =>
      new Promise<unknown>((resolve) => {
        const look = () => {
          const found = said.find((line) => key in line)
          if (found !== undefined) resolve(found[key])
        }
        hear.add(look)
        look()
      }),
    ended: exitOf(child),
  }
}

const exitOf = (child: ChildProcess) =>
  new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.once('exit', (code, signal) => resolve(code ?? signal)),
  )

/** Processes of ours that run this script, zombies left aside. */
const running = (script: string): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[1] === script
      } catch {
        return false
      }
    })

/** The renderer has begun when its file is there, as the third: worker, run, file. */
const filesOfWork = (data: string) => readdirSync(join(data, 'work'), { recursive: true }).length

test('exactly one of two processes that start at once on a new folder creates the first key', async () => {
  const data = temporaryFolder()
  const processes = await Promise.all([start(data, 'start'), start(data, 'start')])
  const keys = await Promise.all(processes.map(({ prints }) => prints('apiKey')))
  expect(await Promise.all(processes.map((each) => each.ended))).toEqual([0, 0])
  expect(keys.filter((key) => key !== null)).toEqual([expect.stringMatching(/^rk_/)])
})

test('a balance of 3 pays for exactly 3 of 240 concurrent creates with 12 keys in two processes', async () => {
  const data = temporaryFolder()
  const admin = await openAdministration({
    dataFolder: data,
    databaseUrl: await databaseUrlOf(data),
    clock: systemClock,
    make: true,
  })
  await admin.createAccount('acme', 3)
  const keys: string[] = []
  for (let n = 0; n < 12; n++) keys.push((await admin.createKey('acme', {})).apiKey)
  const processes = await Promise.all(
    [0, 6].map((first) => start(data, 'create', keys.slice(first, first + 6).join(','))),
  )
  await Promise.all(processes.map(({ prints }) => prints('ready')))
  for (const { child } of processes) child.kill('SIGUSR2')
  const statuses = (await Promise.all(processes.map(({ prints }) => prints('statuses')))).flat()
  expect(statuses.filter((status) => status === 201)).toHaveLength(3)
  expect(statuses.filter((status) => status === 402)).toHaveLength(237)
  expect(await admin.verify()).toMatchObject({ problems: [], runs: 3 })
  await admin.close()
})

test('a killed service leaves no renderer, and the next one renders its run when the lease has run out', async () => {
  const data = temporaryFolder()
  const killed = await start(data, 'render', renderer)
  const id = String(await killed.prints('id'))
  await until('a renderer at work', () => filesOfWork(data) === 3)
  if (process.platform === 'linux') expect(running(renderer)).toHaveLength(1)
  killed.child.kill('SIGKILL')
  expect(await killed.ended).toBe('SIGKILL')
  if (process.platform === 'linux')
    await until('the end of the renderer', () => running(renderer).length === 0)

  const next = await createTestService({ dataFolder: data, ephemeralKey: true })
  // The lease of the killed process is by the clock of the machine.
  next.clock.jump(Date.now() - next.clock.now())
  const before = next.clock.now()
  expect((await ended(next, id)).status).toBe('succeeded')
  // PostgreSQL counts leases by its own clock, which the test does not move.
  if (!usesPostgres) expect(next.clock.now() - before).toBeLessThanOrEqual(25_000)
})

test('Ctrl-C on the process group returns the run in progress to the queue', async () => {
  const data = temporaryFolder()
  const service = await start(data, 'render', renderer)
  const id = String(await service.prints('id'))
  const store = await openStoreOf({ dataFolder: data, databaseUrl: await databaseUrlOf(data) })
  onTestFinished(() => store.close())
  await until('a renderer at work', () => filesOfWork(data) === 3)
  process.kill(-(service.child.pid ?? 0), 'SIGINT')
  await service.prints('closed')
  expect(await service.ended).toBe(0)
  expect(await store.findRun(id, 1)).toMatchObject({ status: 'queued', failure: undefined })
  expect(filesOfWork(data)).toBe(0)
})
