/** Rows whose outputs are renamed, swapped and shifted: their files move, nothing is paid again, and a kill loses none. */
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join, relative } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createLockKeeper } from '../../src/batch/lock/file.js'
import {
  type Lock,
  type LockEntry,
  type LockedOutput,
  NO_LOCK,
  outputsOf,
  withEntry,
} from '../../src/batch/lock/lock.js'
import { identityInputOf } from '../../src/batch/plan/decide.js'
import { makePlan } from '../../src/batch/plan/index.js'
import { moveFiles } from '../../src/batch/results/move-files.js'
import { identityOf } from '../../src/journal/identity.js'
import { folderWith, read } from './folder.js'

interface Row {
  readonly name: string
  readonly prompt: string
  readonly output: string
  readonly image_urls?: readonly string[]
}

interface Place {
  readonly folder: string
  lock: Lock
}

const MODEL = 'acme/still-1'
const FLAGS = { force: false, forcePending: false, overwrite: false, resubmitUnconfirmed: false }
/** Each prompt has two outputs, with bytes of their own. */
const bytesOf = (prompt: string, number: number) => Buffer.from(`${prompt} ${number}`.padEnd(20))
const sum = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

interface Given {
  /** The batch is killed at this lock write while files move, counted from 0. */
  readonly killedAt?: number | undefined
  /** Whether that write is the last thing that the batch does. Else it is not made. */
  readonly isWritten?: boolean
  /** Ctrl-C at this lock write, counted from 0. */
  readonly interruptedAt?: number
  readonly only?: string
  readonly allowOutside?: boolean
  readonly creates?: boolean
  readonly overwrite?: boolean
}

/** What is done for each row. */
async function batch(
  place: Place,
  rows: readonly Row[],
  {
    killedAt = Number.POSITIVE_INFINITY,
    isWritten = false,
    interruptedAt,
    only,
    allowOutside = false,
    creates = true,
    overwrite = false,
  }: Given = {},
) {
  const { folder } = place
  const text = rows.map((row) => JSON.stringify({ kind: 'image', ...row })).join('\n')
  const result = await read(text, { name: 'shots.jsonl', folder, allowOutside })
  if (!result.ok) throw new Error(JSON.stringify(result.problems))
  const plan = await makePlan({
    manifest: result.manifest,
    lock: place.lock,
    flags: { ...FLAGS, overwrite },
    models: { image: MODEL },
    identity: identityOf,
    allowOutside,
    selects: ({ name }) => only === undefined || name === only,
  })
  let writes = 0
  const interrupt = new AbortController()
  const keeper = createLockKeeper({
    base: place.lock,
    lock: plan.lock,
    read: () => undefined,
    async write(lock) {
      const number = writes++
      if (number < killedAt || (number === killedAt && isWritten)) place.lock = lock
      if (number >= killedAt) throw new Error('killed')
      if (number === interruptedAt) interrupt.abort(new Error('killed'))
      return true
    },
    onChanged() {},
  })
  const actions = Object.fromEntries(plan.steps.map(({ entry, action }) => [entry.name, action]))
  const parts = { disk: plan.disk, keeper, folder, signal: interrupt.signal }
  const steps = await moveFiles(plan.steps, parts).catch((error: Error) => {
    if (error.message !== 'killed') throw error
    return undefined
  })
  if (steps === undefined) return { actions, isKilled: true }
  writes = Number.NEGATIVE_INFINITY
  // What is created gets its files in place.
  for (const { entry, action, outputs, hash: known } of steps) {
    if (action.do !== 'create' || !creates) continue
    const found = identityInputOf(entry, (name) => keeper.entry(name)?.made)
    const hash = known ?? (found.ok ? identityOf(MODEL, found.identityInput) : '')
    const made: LockedOutput[] = []
    for (const number of [1, 2]) {
      const planned = outputs[number - 1] ?? (await plan.disk.again().lookAt(entry, undefined, 2))[number - 1]
      const path = join(folder, (planned?.file ?? '').replace('{ext}', 'png'))
      const bytes = bytesOf(String(entry.input.prompt), number)
      writeFileSync(path, bytes)
      made.push({
        ...{ url: 'https://cdn.example/x', content_type: 'image/png', bytes: bytes.length },
        ...{ file: relative(folder, path), sha256: sum(bytes) },
      })
    }
    const [first, ...others] = made as [LockedOutput, ...LockedOutput[]]
    const run = `run_${entry.input.prompt}`
    const about = { hash, model: MODEL, kind: 'image', run, service: undefined, made_at: '' } as const
    const outputsMade = others.map((each) => ({ ...each, run }))
    await keeper.set(entry.name, {
      made: { ...about, ...first, inputs: {}, outputs: outputsMade },
      pending: undefined,
      further: {},
    } satisfies LockEntry)
  }
  await keeper.write()
  return { actions, isKilled: false }
}

/** Every output of every row has the bytes that it should. */
function expectInPlace({ folder, lock }: Place, rows: readonly Row[]): void {
  for (const { name, prompt, output } of rows) {
    const outputs = outputsOf(lock.entries.get(name)?.made)
    expect(outputs).toHaveLength(2)
    expect(outputs[0]?.file.replace(/\.png$/, '')).toBe(output.replace(/\.(png|\{ext\})$/, ''))
    for (const [at, { file }] of outputs.entries())
      expect(readFileSync(join(folder, file))).toEqual(bytesOf(prompt, at + 1))
  }
}

const place = (): Place => ({ folder: folderWith(), lock: NO_LOCK })
const row = (name: string, prompt: string, output = `${name}.png`, source?: string): Row => ({
  ...{ name, prompt, output },
  ...(source !== undefined && { image_urls: [`row:${source}`] }),
})
const moved = expect.objectContaining({ do: 'download', why: 'moved' })
const upToDate = { do: 'up_to_date' }
const created = expect.objectContaining({ do: 'create' })

describe('files of rows', () => {
  it.each<[string, readonly Row[], readonly Row[], Readonly<Record<string, unknown>>]>([
    [
      'with other outputs move',
      [row('a', 'A'), row('b', 'B')],
      [row('a', 'A', 'other.png'), row('b', 'B')],
      { a: moved, b: upToDate },
    ],
    [
      'that swap their outputs',
      [row('a', 'A'), row('b', 'B')],
      [row('a', 'A', 'b.png'), row('b', 'B', 'a.png')],
      { a: moved, b: moved },
    ],
    [
      'that swap open outputs',
      [row('a', 'A', 'a.{ext}'), row('b', 'B', 'b.{ext}')],
      [row('a', 'A', 'b.{ext}'), row('b', 'B', 'a.{ext}')],
      { a: moved, b: moved },
    ],
    [
      'that swap their prompts',
      [row('a', 'A'), row('b', 'B')],
      [row('a', 'B'), row('b', 'A')],
      { a: moved, b: moved },
    ],
    [
      'in a circle of three',
      [row('a', 'A'), row('b', 'B'), row('c', 'C')],
      [row('a', 'C'), row('b', 'A'), row('c', 'B')],
      { a: moved, b: moved, c: moved },
    ],
    [
      'that shift, since a new row is before them',
      [row('1', 'A'), row('2', 'B')],
      [row('1', 'new'), row('2', 'A'), row('3', 'B')],
      { 1: created, 2: moved, 3: moved },
    ],
    [
      'whose further output has the name of a new row',
      [row('a', 'A')],
      [row('a', 'A'), row('a-2', 'B')],
      { a: moved, 'a-2': created },
    ],
    [
      'of which one is created again, and its output goes to another',
      [row('a', 'A'), row('b', 'B')],
      [row('a', 'edited', 'c.png'), row('b', 'B', 'a.png')],
      { a: created, b: moved },
    ],
    [
      'that swap their names, where one of them uses another row',
      [row('s', 'S'), row('p', 'P'), row('q', 'Q', 'q.png', 's')],
      [row('s', 'S'), row('q', 'P', 'p.png'), row('p', 'Q', 'q.png', 's')],
      { s: upToDate, p: upToDate, q: upToDate },
    ],
    [
      'whose further output would have the name of another one',
      [row('a', 'A'), row('a-2', 'B')],
      [row('a', 'A'), row('a-2', 'B'), row('a-1', 'C')],
      { a: moved, 'a-2': upToDate, 'a-1': created },
    ],
    [
      'that take the output of a row that has left the manifest',
      [row('a', 'A'), row('b', 'B')],
      [row('c', 'C', 'a.png'), row('b', 'B')],
      { c: created, b: upToDate },
    ],
  ])('%s', async (_, before, after, actions) => {
    const here = place()
    await batch(here, before)
    expect((await batch(here, after)).actions).toEqual(actions)
    expectInPlace(here, after)
    const again = await batch(here, after)
    expect(Object.values(again.actions).every((action) => action.do === 'up_to_date')).toBe(true)
  })

  it('stay in place when --only leaves their row out: another row cannot take it', async () => {
    const here = place()
    await batch(here, [row('a', 'A'), row('b', 'B')])
    const after = [row('a', 'A', 'b.png'), row('b', 'B', 'a.png')]
    const { actions } = await batch(here, after, { only: 'a' })
    expect(actions.a).toEqual({
      do: 'conflict',
      why: 'the file of "b", which --only leaves out',
      at: 0,
      isForeign: false,
    })
    expectInPlace(here, [row('a', 'A'), row('b', 'B')])
  })

  it('stay in place when --only leaves their row out, also under a new name of the row', async () => {
    const here = place()
    await batch(here, [row('a', 'A')])
    const after = [row('b', 'A', 'other.png'), row('c', 'C', 'a.png')]
    const { actions } = await batch(here, after, { only: 'c' })
    expect(actions.c).toMatchObject({ do: 'conflict', why: 'the file of "a", which --only leaves out' })
    expect(readFileSync(join(here.folder, 'a.png'))).toEqual(bytesOf('A', 1))
  })

  it('with the same bytes move each to its own place', async () => {
    const here = place()
    await batch(here, [row('a', 'one'), row('b', 'two')])
    // Two runs may give the same file.
    const [a, b] = ['a', 'b'].map((name) => here.lock.entries.get(name)?.made)
    if (a === undefined || b === undefined) throw new Error('both were made')
    copyFileSync(join(here.folder, a.file), join(here.folder, b.file))
    const same = { ...b, sha256: a.sha256, bytes: a.bytes }
    here.lock = withEntry(here.lock, 'b', { made: same, pending: undefined, further: {} })
    const after = [row('a', 'one', 'b.png'), row('b', 'two', 'c.png')]
    expect((await batch(here, after)).actions).toEqual({ a: moved, b: moved })
    for (const name of ['b.png', 'c.png'])
      expect(readFileSync(join(here.folder, name))).toEqual(bytesOf('one', 1))
    expect((await batch(here, after)).actions).toEqual({ a: upToDate, b: upToDate })
  })

  it('swap through a link to their folder', async () => {
    const here = place()
    mkdirSync(join(here.folder, 'o'))
    symlinkSync('o', join(here.folder, 'p'))
    await batch(here, [row('a', 'A', 'o/a.png'), row('b', 'B', 'o/b.png')])
    const after = [row('a', 'A', 'p/b.png'), row('b', 'B', 'p/a.png')]
    expect((await batch(here, after)).actions).toEqual({ a: moved, b: moved })
    expectInPlace(here, after)
  })

  it('outside the folder of the manifest move where that is allowed', async () => {
    const here = place()
    const outside = { allowOutside: true }
    const at = (name: string) => `../${basename(here.folder)}-${name}.png`
    onTestFinished(() => {
      for (const name of ['a', 'a-2', 'b', 'b-2']) rmSync(join(here.folder, at(name)), { force: true })
    })
    await batch(here, [row('a', 'A', at('a')), row('b', 'B', at('b'))], outside)
    const after = [row('a', 'A', at('b')), row('b', 'B', at('a'))]
    expect((await batch(here, after, outside)).actions).toEqual({ a: moved, b: moved })
    expectInPlace(here, after)
  })

  it('of a row that is created again are kept until it has been', async () => {
    const here = place()
    await batch(here, [row('a', 'A'), row('b', 'B')])
    const after = [row('a', 'edited', 'c.png'), row('b', 'B', 'a.png')]
    expect((await batch(here, after, { creates: false })).actions).toEqual({ a: created, b: moved })
    expect(readFileSync(join(here.folder, 'c.png'))).toEqual(bytesOf('A', 1))
  })

  it('of nobody are in the way, also where the file could be moved', async () => {
    const here = place()
    await batch(here, [row('a', 'A')])
    writeFileSync(join(here.folder, 'b.png'), bytesOf('foreign', 1))
    const { actions } = await batch(here, [row('a', 'A', 'b.png')])
    expect(actions.a).toEqual({
      do: 'conflict',
      why: 'not created by this batch',
      at: 0,
      isForeign: true,
    })
  })

  it.each([0, 1, 2])(
    'that swap are in their places when Ctrl-C comes at lock write %i, or in those that the lock file names',
    async (interruptedAt) => {
      const here = place()
      await batch(here, [row('a', 'A'), row('b', 'B')])
      const after = [row('a', 'A', 'b.png'), row('b', 'B', 'a.png')]
      await batch(here, after, { interruptedAt })
      const files = [...here.lock.entries.values()].flatMap(({ made }) =>
        outputsOf(made).map(({ file }) => file),
      )
      expect(readdirSync(here.folder).sort()).toEqual(files.sort())
      expect(files.filter((file) => file.includes('.moving'))).toEqual([])
      expect(Object.values((await batch(here, after)).actions).map((action) => action.do)).not.toContain(
        'conflict',
      )
      expectInPlace(here, after)
    },
  )

  const foreign = (name: string) => (folder: string) => writeFileSync(join(folder, name), 'my own work')
  const nothing = () => {}
  it.each<[string, (folder: string) => void, Given, 'A' | 'B' | 'my own work']>([
    ['moves to a free place', (folder) => rmSync(join(folder, 'b.png')), {}, 'A'],
    ['moves to the place of a row that moves away', nothing, {}, 'A'],
    ['stays where --only leaves out the row that has its new place', nothing, { only: 'a' }, 'B'],
    ['stays there with --overwrite too', nothing, { only: 'a', overwrite: true }, 'B'],
    ['stays where a file of others has its new place', foreign('b.png'), {}, 'my own work'],
    ['moves there with --overwrite', foreign('b.png'), { overwrite: true }, 'A'],
  ])('of a row whose last create is unconfirmed %s', async (_, prepare, given, found) => {
    const here = place()
    await batch(here, [row('a', 'A'), row('b', 'B')])
    const entry = here.lock.entries.get('a')
    if (entry?.made === undefined) throw new Error('it was made')
    const { hash } = entry.made
    const create = { hash, model: MODEL, kind: 'image', service: undefined, sent_at: '' } as const
    const pending = { ...create, state: 'unconfirmed', key: '~3f2a', token: 't' } as const
    here.lock = withEntry(here.lock, 'a', { ...entry, pending })
    prepare(here.folder)
    const { actions } = await batch(here, [row('a', 'A', 'b.png'), row('b', 'B', 'c.png')], given)
    expect(actions.a).toEqual({ do: 'unconfirmed', key: '~3f2a' })
    const contents = found === 'my own work' ? Buffer.from(found) : bytesOf(found, 1)
    expect(readFileSync(join(here.folder, 'b.png'))).toEqual(contents)
  })

  it('get their new letter case where the file system has both names for one file', async () => {
    const here = place()
    await batch(here, [row('a', 'A', 'Fox.png')])
    // As on a file system that ignores letter case: the new name leads to the file too.
    for (const number of ['', '-2'])
      linkSync(join(here.folder, `Fox${number}.png`), join(here.folder, `fox${number}.png`))
    const after = [row('a', 'A', 'fox.png')]
    expect((await batch(here, after)).actions).toEqual({ a: moved })
    expectInPlace(here, after)
    expect((await batch(here, after)).actions).toEqual({ a: upToDate })
  })

  it('end in their places after any kills, and nothing is created twice', async () => {
    const names = ['a', 'b', 'c', 'd', 'e']
    const order = fc.shuffledSubarray(names, { minLength: 3 })
    const kills = fc.array(fc.record({ killedAt: fc.nat(6), isWritten: fc.boolean() }), { maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(order, order, order, kills, async (first, outputs, prompts, kills) => {
        const here = place()
        await batch(
          here,
          first.map((name) => row(name, name.toUpperCase())),
        )
        const rows = first.slice(0, Math.min(outputs.length, prompts.length))
        const after = rows.map((name, at) =>
          row(name, prompts[at]?.toUpperCase() ?? '', `${outputs[at]}.png`),
        )
        let paid = 0
        for (const kill of [...kills, {}]) {
          const { actions, isKilled } = await batch(here, after, kill)
          if (!isKilled) paid += Object.values(actions).filter((action) => action.do === 'create').length
        }
        expectInPlace(here, after)
        const known = new Set(first.map((name) => name.toUpperCase()))
        expect(paid).toBe(after.filter(({ prompt }) => !known.has(prompt)).length)
        expect(readdirSync(here.folder).filter((name) => name.includes('.part'))).toEqual([])
      }),
      { numRuns: 60 },
    )
  })
})
