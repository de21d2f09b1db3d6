/**
 * A batch that dies directly before or after one of its writes, and the same command once more. One batch runs to its
 * end, and its folders are copied at each write: the copy is what `kill -9` leaves there. Each test puts one copy back.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { link } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { LockFile } from '../../src/batch/lock/file.js'
import { systemFiles } from '../../src/host/file-system.js'
import type { Fetch } from '../../src/host/http.js'
import { Journal } from '../../src/journal/index.js'
import { bodyOf, createFamily, sha256 } from '../support/family.js'
import { rowsOf, temporaryFolder } from '../support/index.js'

/** In the safe order. The number says at which of its calls. */
const WRITES = [
  'lock file with `working` 1',
  'journal: sending 2',
  'create 2',
  'journal: accepted 2',
  'journal: ended 2',
  'journal: file 2',
  'rename 2',
  'lock file with the result 1',
  'journal: recorded 1',
  'lock file without `working` 1',
]
const POINTS = WRITES.flatMap((write) => [`before ${write}`, `after ${write}`])

const ROWS = [
  { name: 'a', prompt: 'A' },
  { name: 'b', prompt: 'B' },
  { name: 'c', prompt: 'C', image_urls: ['row:a'] },
]

interface Death {
  /** The folders at this time. */
  readonly copy: string
  /** Prompts of the creates that the service has accepted. */
  readonly paid: readonly string[]
}

type Family = Awaited<ReturnType<typeof createFamily>>

/** Copies by another process: closing a file here would release the locks of this process on it. */
const copy = (from: string, to: string) => execFileSync('cp', ['-R', from, to])

let family: Family
const paid: string[] = []
const deaths = new Map<string, Death>()

const countingPaid: Fetch = async (request) => {
  const response = await family.service.counting(request)
  if (request.method === 'POST' && response.status === 201) paid.push(bodyOf(request.body).input.prompt)
  return response
}

beforeAll(async () => {
  family = await createFamily(ROWS)
  const copies = temporaryFolder()
  const calls = new Map<string, number>()

  function keep(point: string): void {
    if (!POINTS.includes(point)) return
    const to = join(copies, `${deaths.size}`)
    mkdirSync(to)
    copy(family.folder, join(to, 'folder'))
    if (existsSync(join(family.service.home, 'state'))) copy(family.service.home, join(to, 'home'))
    deaths.set(point, { copy: to, paid: [...paid] })
  }

  /** Keeps the folders before and after a write. */
  function at<Result>(name: string | undefined, write: () => Result): Result {
    if (name === undefined) return write()
    const number = (calls.get(name) ?? 0) + 1
    calls.set(name, number)
    keep(`before ${name} ${number}`)
    const done = write()
    if (!(done instanceof Promise)) {
      keep(`after ${name} ${number}`)
      return done
    }
    return done.then((result) => {
      keep(`after ${name} ${number}`)
      return result
    }) as Result
  }

  const { intend, accepted, status, files, recorded } = Journal.prototype
  const { begin, write, end } = LockFile.prototype
  let isWithWorking = false
  let isLast = false
  vi.spyOn(Journal.prototype, 'intend').mockImplementation(function (this: Journal, ...words) {
    return at('journal: sending', () => intend.apply(this, words))
  })
  vi.spyOn(Journal.prototype, 'accepted').mockImplementation(function (this: Journal, ...words) {
    at('journal: accepted', () => accepted.apply(this, words))
  })
  vi.spyOn(Journal.prototype, 'status').mockImplementation(function (this: Journal, ...words) {
    const isEnd = words[1].state.phase === 'succeeded'
    at(isEnd ? 'journal: ended' : undefined, () => status.apply(this, words))
  })
  vi.spyOn(Journal.prototype, 'files').mockImplementation(function (this: Journal, ...words) {
    at('journal: file', () => files.apply(this, words))
  })
  vi.spyOn(Journal.prototype, 'recorded').mockImplementation(function (this: Journal, ...words) {
    at(words[1].length > 0 ? 'journal: recorded' : undefined, () => recorded.apply(this, words))
  })
  vi.spyOn(LockFile.prototype, 'begin').mockImplementation(async function (this: LockFile, journal) {
    isWithWorking = !this.hasWritten
    await begin.call(this, journal)
    isWithWorking = false
  })
  vi.spyOn(LockFile.prototype, 'end').mockImplementation(async function (this: LockFile, isDone) {
    isLast = isDone
    await end.call(this, isDone)
  })
  vi.spyOn(LockFile.prototype, 'write').mockImplementation(async function (this: LockFile) {
    const word = isWithWorking ? 'with `working`' : isLast ? 'without `working`' : 'with the result'
    isWithWorking = false
    await at(`lock file ${word}`, () => write.call(this))
  })
  const fileSystem = {
    ...systemFiles,
    link: (from: string, to: string) => at('rename', () => link(from, to)),
  }
  const fetch: Fetch = (request) =>
    at(request.method === 'POST' ? 'create' : undefined, () => countingPaid(request))
  const ran = await family.run([], { fileSystem, fetch })
  vi.restoreAllMocks()
  expect(ran).toMatchObject({ code: 0 })
  expect([...deaths.keys()].sort()).toEqual([...POINTS].sort())
})

describe('a batch that died', () => {
  afterEach(() => vi.restoreAllMocks())

  it.each(POINTS)('%s pays for nothing twice, and its files are whole', async (point) => {
    const { service, folder } = family
    const death = deaths.get(point) as Death
    for (const path of [folder, service.home]) rmSync(path, { recursive: true })
    copy(join(death.copy, 'folder'), folder)
    if (existsSync(join(death.copy, 'home'))) copy(join(death.copy, 'home'), service.home)
    paid.splice(0, paid.length, ...death.paid)
    const { code, stderr } = await family.run([], { fetch: countingPaid })

    const unconfirmed = rowsOf(service.home).filter(({ phase }) => phase === 'unconfirmed')
    const names = unconfirmed.map(({ entry }) => entry)
    for (const name of names) expect(stderr).toMatch(new RegExp(`^error: ${name}\\b`, 'm'))
    expect({ code, stderr }).toEqual({ code: names.length > 0 ? 13 : 0, stderr })
    // Only a create that the command has begun and not seen answered has an unknown outcome.
    expect(names.length > 0).toBe(/after journal: sending|create|before journal: accepted/.test(point))
    expect(new Set(paid).size).toBe(paid.length)
    const made = ROWS.filter(({ name }) => !names.includes(name))
    for (const { prompt } of made) expect(paid).toContain(prompt)

    const lock = family.lock()
    expect(Object.keys(lock).sort()).toEqual(made.map(({ name }) => name))
    for (const { name } of made) expect(lock[name].sha256).toBe(sha256(family.path(lock[name].file)))
    expect(family.pictures()).toEqual(made.map(({ name }) => `${name}.png`))
    expect(readdirSync(folder).filter((name) => name.startsWith('.'))).toEqual([])
    // Every accepted run is in the journal, and nothing but what is unconfirmed is in flight.
    const known = rowsOf(service.home).map(({ name }) => name)
    expect([...known].sort()).toEqual(ROWS.map(({ name }) => name))
    expect(Object.keys(family.flights()).sort()).toEqual([...names].sort())
    const { working } = JSON.parse(readFileSync(family.lockPath, 'utf8'))
    expect(working === undefined).toBe(names.length === 0)

    paid.splice(0)
    const again = await family.run([], { fetch: countingPaid })
    expect({ code: again.code, paid }).toEqual({ code, paid: [] })
  })
})
