import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isWritten, lockFileAt, readLock } from '../../src/batch/lock/file.js'
import {
  type Lock,
  type LockEntry,
  lockPathOf,
  type Made,
  NO_LOCK,
  type Pending,
  publicUrl,
  withEntry,
} from '../../src/batch/lock/lock.js'
import { lockText, parseLock } from '../../src/batch/lock/lock-text.js'
import type { Models } from '../../src/batch/manifest/sections.js'
import { diskOf } from '../../src/batch/plan/disk.js'
import { createPairing } from '../../src/batch/plan/pair.js'
import { createManualClock } from '../support/clock.js'
import { entriesOf, folderWith } from './folder.js'

const HASH = 'a'.repeat(64)
const made: Made = {
  hash: HASH,
  model: 'acme/still-1',
  kind: 'image',
  run: 'run_1',
  service: 'https://api.example.com',
  url: 'https://cdn.example.com/fox.png',
  file: 'assets/fox.png',
  sha256: 'b'.repeat(64),
  bytes: 123,
  content_type: 'image/png',
  made_at: '2026-11-21T08:00:00.000Z',
}
const pending: Pending = {
  state: 'unconfirmed',
  hash: HASH,
  model: 'acme/still-1',
  kind: 'image',
  service: undefined,
  key: '~3f2a',
  token: 'd9428888-122b-11e1-b85c-61cd3cbb3210',
  sent_at: '2026-11-21T08:00:00.000Z',
}
async function writeLock(path: string, manifest: string, given: Lock): Promise<void> {
  const file = lockFileAt(path, manifest, createManualClock())
  file.read()
  expect(await file.write(given)).toBe(true)
}
const entry = (more: Partial<LockEntry> = {}): LockEntry => ({
  made,
  pending: undefined,
  further: {},
  ...more,
})
const lock = (entries: Readonly<Record<string, LockEntry>>): Lock => ({
  ...NO_LOCK,
  entries: new Map(Object.entries(entries)),
})

const hash = fc.stringMatching(/^[0-9a-f]{64}$/)
const kind = fc.constantFrom('image' as const, 'video' as const, undefined)
const service = fc.option(fc.webUrl(), { nil: undefined })
const anyMade: fc.Arbitrary<Made> = fc.record({
  hash,
  model: fc.constant('acme/x'),
  kind,
  run: fc.string({ minLength: 1 }),
  service,
  url: fc.webUrl(),
  file: fc.string({ minLength: 1 }),
  sha256: hash,
  bytes: fc.nat(),
  content_type: fc.string(),
  made_at: fc.string(),
})
const lasting = { hash, model: fc.constant('acme/x'), kind }
const common = { ...lasting, service, sent_at: fc.string() }
const anyPending: fc.Arbitrary<Pending> = fc.oneof(
  fc.record({ state: fc.constant('accepted' as const), run: fc.string({ minLength: 1 }), ...common }),
  fc.record({
    state: fc.constant('unconfirmed' as const),
    key: fc.option(fc.string(), { nil: undefined }),
    token: fc.option(fc.string(), { nil: undefined }),
    ...common,
  }),
)
const further = fc.dictionary(
  fc.stringMatching(/^later_\w{1,5}$/),
  // As JSON has it: there is no negative zero in it.
  fc.jsonValue().map((value): unknown => JSON.parse(JSON.stringify(value))),
)
const anyEntry: fc.Arbitrary<LockEntry> = fc
  .record({
    made: fc.option(anyMade, { nil: undefined }),
    pending: fc.option(anyPending, { nil: undefined }),
    further,
  })
  .filter((each) => (each.made ?? each.pending) !== undefined)
const anyLock: fc.Arbitrary<Lock> = fc.record({
  manifest: fc.option(fc.string(), { nil: undefined }),
  entries: fc
    .array(fc.tuple(fc.oneof(fc.string(), fc.constantFrom('__proto__', '10', '9', 'constructor')), anyEntry))
    .map((rows) => new Map(rows)),
  rows: fc.array(fc.tuple(fc.string(), fc.integer({ min: 1, max: 12 }))).map((rows) => new Map(rows)),
  further,
})

describe('the text of a lock file', () => {
  it('sorts rows by name, with one field a line', () => {
    expect(
      lockText({
        ...lock({ b: entry(), '10': entry({ made: undefined, pending }) }),
        rows: new Map([
          ['b', 1],
          ['10', 2],
        ]),
        manifest: 'shots.yaml',
      }),
    ).toMatchInlineSnapshot(`
      "{
        "version": 1,
        "manifest": "shots.yaml",
        "runs": {
          "10": {
            "order": 2,
            "variant": 2,
            "pending": {
              "hash": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
              "kind": "image",
              "model": "acme/still-1",
              "state": "unconfirmed",
              "key": "~3f2a",
              "token": "d9428888-122b-11e1-b85c-61cd3cbb3210",
              "sent_at": "2026-11-21T08:00:00.000Z"
            }
          },
          "b": {
            "hash": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "kind": "image",
            "model": "acme/still-1",
            "run": "run_1",
            "service": "https://api.example.com",
            "url": "https://cdn.example.com/fox.png",
            "file": "assets/fox.png",
            "sha256": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
            "bytes": 123,
            "content_type": "image/png",
            "made_at": "2026-11-21T08:00:00.000Z"
          }
        }
      }
      "
    `)
    expect(lockText(NO_LOCK)).toBe('{\n  "version": 1,\n  "runs": {}\n}\n')
  })

  it('comes back as it was, byte for byte', () => {
    fc.assert(
      fc.property(anyLock, (given) => {
        const text = lockText(given)
        const read = parseLock(text, 'x')
        expect(new Map(read.entries)).toEqual(new Map(given.entries))
        expect(read.manifest).toBe(given.manifest)
        expect(lockText(read)).toBe(text)
        expect(JSON.parse(text)).toMatchObject({ version: 1 })
      }),
    )
  })

  it('does not depend on the order in which things were made', () => {
    const rows = [['b', entry()] as const, ['a', entry()] as const]
    const other = rows.reduce((sum, [name, each]) => withEntry(sum, name, each), NO_LOCK)
    expect(lockText(other)).toBe(lockText(lock({ a: entry(), b: entry() })))
    expect(withEntry(other, 'a', undefined).entries.has('a')).toBe(false)
  })

  it('keeps the order of the manifest among entries of one input, and the numbers of their runs', () => {
    const rows = new Map([
      ['z', 1],
      ['other', 1],
      ['a', 1],
      ['a-2', 2],
    ])
    const other = entry({ made: { ...made, hash: 'c'.repeat(64) } })
    const given = { ...lock({ a: entry(), 'a-2': entry(), other, z: entry() }), rows }
    const { runs } = JSON.parse(lockText(given))
    const fields = Object.entries(runs as Record<string, { order?: number; variant?: number }>)
    expect(fields.map(([name, { order, variant }]) => [name, order, variant])).toEqual([
      ['a', 2, undefined],
      ['a-2', 3, 2],
      ['other', undefined, undefined],
      ['z', undefined, undefined],
    ])
    expect([...parseLock(lockText(given), 'x').rows]).toEqual([
      ['other', 1],
      ['z', 1],
      ['a', 1],
      ['a-2', 2],
    ])
  })

  it('changes only the entry of a new row, so that two branches with a new row each merge', () => {
    const text = (...prompts: readonly string[]) =>
      lockText({
        ...lock(
          Object.fromEntries(
            prompts.map((each) => [
              each,
              entry({
                made: { ...made, hash: (each[0] ?? '').charCodeAt(0).toString(16).padStart(64, '0') },
              }),
            ]),
          ),
        ),
        rows: new Map(prompts.map((each) => [each, 1])),
      })
    const folder = folderWith({
      base: text('c', 'c2', 'm', 'x', 'x2'),
      // Each branch adds a row before all others, and one of them a third row with the input of two others.
      ours: text('a', 'c', 'c2', 'm', 'x', 'x2', 'x3'),
      theirs: text('e', 'c', 'c2', 'm', 'x', 'x2'),
    })
    const found = spawnSync('git', ['merge-file', '-p', 'ours', 'base', 'theirs'], {
      cwd: folder,
      encoding: 'utf8',
    })
    expect(found.status).toBe(0)
    const { entries, rows } = parseLock(found.stdout, 'x')
    expect([...entries.keys()]).toEqual(['a', 'c', 'c2', 'e', 'm', 'x', 'x2', 'x3'])
    expect([...rows.keys()].filter((name) => name.startsWith('x'))).toEqual(['x', 'x2', 'x3'])
  })

  it('keeps names with line and paragraph separators, since only a line feed begins a line', () => {
    const names = ['a\u2028b', 'a\u2029======= b', '\u2028<<<<<<< HEAD']
    const given = lock(Object.fromEntries(names.map((name) => [name, entry()])))
    expect([...parseLock(lockText(given), 'x').entries.keys()].sort()).toEqual([...names].sort())
  })

  it('has names in the Unicode form NFC; two forms of one name stay two entries', () => {
    const [nfc, nfd] = ['é'.normalize('NFC'), 'é'.normalize('NFD')]
    const namesIn = (given: Lock) => [...parseLock(lockText(given), 'x').entries.keys()].sort()
    expect(namesIn(lock({ [nfd]: entry() }))).toEqual([nfc])
    expect(namesIn(lock({ [nfc]: entry(), [nfd]: entry() }))).toEqual([nfd, nfc])
  })

  it('changes in few lines when one run is made anew', () => {
    const lines = (given: Lock) => lockText(given).split('\n')
    const before = lines(lock({ a: entry(), b: entry(), c: entry() }))
    const after = lines(
      lock({ a: entry(), b: entry({ made: { ...made, run: 'run_2', bytes: 4 } }), c: entry() }),
    )
    expect(after.filter((line, at) => line !== before[at])).toHaveLength(2)
  })

  it.each([
    ['', /not a valid lock file/],
    ['{"version": 1', /not a valid lock file/],
    ['[]', /not a JSON object/],
    ['{"runs": {}}', /not a lock file of rushes/],
    ['{"version": 2, "runs": {}}', /newer version of rushes \(format 2/],
    ['{"version": 1, "runs": {"a": {}}}', /entry "a" is not valid/],
    ['{"version": 1, "runs": {"a": {"sha256": 1}}}', /entry "a" is not valid/],
    ['{"version": 1, "runs": {"a": {"pending": {}}}}', /entry "a" is not valid/],
    [`{\n<<<<<<< HEAD\n"version": 1,\n=======\n>>>>>>> main\n}`, /^shots.lock.json:2: .*merge conflict/],
    [`{\r\n"version": 1,\r\n=======\r\n}`, /^shots.lock.json:3: /],
  ])('is refused when it is not valid: %j', (text, message) => {
    expect(() => parseLock(text, 'shots.lock.json')).toThrow(
      expect.objectContaining({
        code: 'usage',
        message: expect.stringMatching(message),
        hint: expect.any(String),
      }),
    )
  })

  it('never ends in anything but a usage error', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        try {
          parseLock(text, 'x')
        } catch (error) {
          expect(error).toMatchObject({ code: 'usage' })
        }
      }),
    )
  })

  it('keeps no part of a link that lets anybody in', () => {
    expect(publicUrl('https://user:secret@cdn.example.com/a/b.png?X-Signature=secret#secret')).toBe(
      'https://cdn.example.com/a/b.png',
    )
  })
})

describe('the lock file', () => {
  it('stands beside the manifest', () => {
    expect(['a/shots.yaml', 'shots', 'a.b/shots', './shots.v2.csv'].map(lockPathOf)).toEqual([
      'a/shots.lock.json',
      'shots.lock.json',
      'a.b/shots.lock.json',
      './shots.v2.lock.json',
    ])
  })

  it('has the mode of a normal file, and reads back as it was written', async () => {
    const folder = folderWith()
    const path = join(folder, 'shots.lock.json')
    expect(readLock(path, join(folder, 'shots.yaml'))).toEqual(NO_LOCK)
    await writeLock(path, join(folder, 'shots.yaml'), lock({ a: entry() }))
    expect(readLock(path, join(folder, 'shots.yaml')).entries.get('a')).toEqual(entry())
    expect(isWritten(path, join(folder, 'shots.yaml'), lock({ a: entry() }))).toBe(true)
    expect(isWritten(path, join(folder, 'shots.yaml'), lock({}))).toBe(false)
    expect(isWritten(join(folder, 'none'), join(folder, 'shots.yaml'), lock({}))).toBe(false)
    expect(statSync(path).mode & 0o777).toBe(0o666 & ~process.umask())
  })

  it('keeps a change that comes while it is written', async () => {
    const folder = folderWith({ 'shots.yaml': '' })
    const path = join(folder, 'shots.lock.json')
    const file = lockFileAt(path, join(folder, 'shots.yaml'), createManualClock())
    expect(file.read()).toBeUndefined()
    const writing = file.write(lock({ a: entry() }))
    const theirs = lockText(lock({ b: entry() }))
    writeFileSync(path, theirs)
    expect(await writing).toBe(false)
    expect(readFileSync(path, 'utf8')).toBe(theirs)
    expect([...(file.read()?.entries.keys() ?? [])]).toEqual(['b'])
    expect(await file.write(lock({ a: entry(), b: entry() }))).toBe(true)
    expect(file.read()).toBeUndefined()
  })

  it('of another manifest that is still there is refused; one of a renamed manifest is taken over', async () => {
    const folder = folderWith({ 'shots.yaml': '' })
    const path = join(folder, 'shots.lock.json')
    await writeLock(path, join(folder, 'shots.yaml'), lock({}))
    expect(() => readLock(path, join(folder, 'shots.json'))).toThrow(
      /belongs to another manifest: shots.yaml/,
    )
    await writeLock(path, join(folder, 'gone.yaml'), lock({}))
    expect(readLock(path, join(folder, 'shots.json')).manifest).toBe('gone.yaml')
  })
})

describe('an entry of the lock file', () => {
  interface Pairs {
    readonly rows: string
    readonly entries: Readonly<Record<string, LockEntry>>
    readonly only?: readonly string[]
    /** Names in the old order of the manifest, with the numbers of their runs. */
    readonly order?: Readonly<Record<string, number>>
    readonly models?: Models
  }
  const oldEntry = (prompt: string, more: Partial<Made> = {}) =>
    entry({ made: { ...made, run: `run_${prompt}`, hash: `${made.model} ${prompt}`, ...more } })

  /** The run that each row of the manifest gets. */
  async function pairs({ rows, entries, only, order = {}, models = { image: made.model } }: Pairs) {
    const found = await entriesOf(rows)
    const { pair, renamed, leftover } = createPairing({
      entries: found,
      lock: { ...lock(entries), rows: new Map(Object.entries(order)) },
      models,
      identity: (model, input) => `${model} ${(input as { prompt: string }).prompt}`,
      isSelected: ({ name }) => only?.includes(name) ?? true,
    })
    const runs = pair(found.map((each) => ({ entry: each, identityInput: each.identityInput }))).map(
      ({ entry, locked }) => [entry.name, locked?.made?.run],
    )
    return { runs: Object.fromEntries(runs), renamed, leftover: [...leftover().keys()] }
  }

  it('goes to one renamed row, and that of another row with the same input to the next one', async () => {
    const [a, b] = [oldEntry('x'), oldEntry('x', { run: 'run_2' })]
    const found = await pairs({
      rows: '[{ name: c, kind: image, prompt: x, count: 2 }]',
      entries: { a, b },
    })
    expect(found.runs).toEqual({ c: 'run_x', 'c-2': 'run_2' })
    expect(found.renamed).toEqual([
      { from: 'a', to: 'c' },
      { from: 'b', to: 'c-2' },
    ])
    expect(found.leftover).toEqual([])
  })

  const [A, B, C] = ['A', 'B', 'C'].map((prompt) => oldEntry(prompt)) as [LockEntry, LockEntry, LockEntry]
  const rowsOf = (...prompts: readonly string[]) =>
    `[${prompts.map((prompt, at) => `{ name: n${at}, kind: image, prompt: ${prompt} }`).join(', ')}]`

  it.each<[string, Pairs, Readonly<Record<string, string | undefined>>]>([
    ['swap', { rows: rowsOf('B', 'A'), entries: { n0: A, n1: B } }, { n0: 'run_B', n1: 'run_A' }],
    [
      'shift, before a new row',
      { rows: rowsOf('new', 'A', 'B', 'C'), entries: { n0: A, n1: B, n2: C } },
      { n0: undefined, n1: 'run_A', n2: 'run_B', n3: 'run_C' },
    ],
    [
      'get the input of a row that keeps it',
      { rows: rowsOf('B', 'B'), entries: { n0: A, n1: B } },
      { n0: 'run_A', n1: 'run_B' },
    ],
    [
      'swap with a row that --only leaves out',
      { rows: rowsOf('B', 'A'), entries: { n0: A, n1: B }, only: ['n0'] },
      { n0: 'run_A', n1: 'run_B' },
    ],
    [
      'swap, one with a run under way',
      {
        rows: rowsOf('B', 'A'),
        entries: { n0: A, n1: { ...B, pending: { ...pending, hash: `${made.model} B` } } },
      },
      { n0: 'run_B', n1: 'run_A' },
    ],
    [
      'are renamed, while another takes the name of an unconfirmed one',
      {
        rows: '[{ name: vixen, kind: image, prompt: F }, { name: fox, kind: image, prompt: H }]',
        entries: {
          fox: entry({ made: undefined, pending: { ...pending, hash: `${made.model} F` } }),
          hen: oldEntry('H'),
        },
      },
      { vixen: undefined, fox: 'run_H' },
    ],
  ])('of rows that %s', async (_, given, runs) => {
    expect((await pairs(given)).runs).toEqual(runs)
  })

  const OTHER = { model: 'acme/other' }
  /** Entry of the prompt X with this file. The run is called after the file. */
  const at = (file: string, more: Partial<Made> = {}) =>
    oldEntry('X', { ...more, file, run: file, hash: `${more.model ?? made.model} X` })

  it.each<[string, Pairs, Readonly<Record<string, string | undefined>>]>([
    [
      'an output with count that moves to another folder',
      {
        rows: '[{ kind: image, prompt: X, output: img/fox.png, count: 2 }]',
        entries: { 'a/fox-2.png': at('a/fox-2.png'), 'a/fox.png': at('a/fox.png') },
      },
      { 'img/fox.png': 'a/fox.png', 'img/fox-2.png': 'a/fox-2.png' },
    ],
    [
      'a renamed row whose output another row of the same input had',
      {
        rows: '[{ name: c, kind: image, prompt: X, output: b.png }, { name: d, kind: image, prompt: X, output: a.png }]',
        entries: { a: at('a.png'), b: at('b.png') },
      },
      { c: 'b.png', d: 'a.png' },
    ],
    [
      'the path of its file, before the name of its file',
      {
        rows: '[{ name: c, kind: image, prompt: X, output: b/x.png }, { name: d, kind: image, prompt: X, output: a/x.png }]',
        entries: { a: at('a/x.png'), b: at('b/x.png') },
      },
      { c: 'b/x.png', d: 'a/x.png' },
    ],
    [
      'a name with a number, which is no number of a variant',
      {
        rows: '[{ name: y, kind: image, prompt: X, count: 2 }]',
        entries: { 'x-2': at('x-2.png'), 'x-2-2': at('x-2-2.png') },
        order: { 'x-2': 1, 'x-2-2': 2 },
      },
      { y: 'x-2.png', 'y-2': 'x-2-2.png' },
    ],
    [
      'the numbers of two rows with fewer variants than before',
      {
        rows: '[{ name: p, kind: image, prompt: X }, { name: q, kind: image, prompt: X, count: 2 }]',
        entries: { m: at('m.png'), 'm-2': at('m-2.png'), n: at('n.png'), 'n-2': at('n-2.png') },
        order: { m: 1, 'm-2': 2, n: 1, 'n-2': 2 },
      },
      { p: 'm.png', q: 'n.png', 'q-2': 'm-2.png' },
    ],
    [
      'the old order of the manifest, where nothing else tells two rows apart',
      {
        rows: '[{ name: p, kind: image, prompt: X }, { name: q, kind: image, prompt: X }]',
        entries: { a: at('a.png'), b: at('b.png') },
        order: { b: 1, a: 1 },
      },
      { p: 'b.png', q: 'a.png' },
    ],
    [
      'an entry whose name is gone, before one whose row was edited',
      {
        rows: '[{ name: a, kind: image, prompt: new }, { name: c, kind: image, prompt: X }]',
        entries: { a: at('a.png'), b: at('b.png') },
      },
      { a: 'a.png', c: 'b.png' },
    ],
    [
      'the letter case of its file',
      {
        rows: '[{ output: fox.png, kind: image, prompt: X }, { output: owl.png, kind: image, prompt: X }]',
        entries: { 'Fox.png': at('Fox.png'), 'Owl.png': at('Owl.png') },
        order: { 'Owl.png': 1, 'Fox.png': 1 },
      },
      { 'fox.png': 'Fox.png', 'owl.png': 'Owl.png' },
    ],
    [
      'no entry of another model',
      {
        rows: '[{ name: c, kind: image, prompt: X }]',
        entries: { a: at('a.png', OTHER) },
      },
      { c: undefined },
    ],
    [
      'the entry of any recorded model, where neither manifest nor settings name one',
      {
        rows: '[{ name: c, kind: image, prompt: X, count: 2 }]',
        entries: { a: at('a.png'), 'a-2': at('a-2.png', OTHER) },
        order: { a: 1, 'a-2': 2 },
        models: {},
      },
      { c: 'a.png', 'c-2': 'a-2.png' },
    ],
    [
      'its own entry by name, also where its files were exchanged',
      {
        rows: '[{ name: a, kind: image, prompt: X, output: b.png }, { name: b, kind: image, prompt: X, output: a.png }]',
        entries: { a: at('a.png'), b: at('b.png') },
      },
      { a: 'a.png', b: 'b.png' },
    ],
  ])('goes by %s', async (_, given, runs) => {
    expect((await pairs(given)).runs).toEqual(runs)
  })

  it('of one input is found for each of 10,000 renamed rows', async () => {
    const rows = `[{ name: new, kind: image, prompt: X, count: 10000 }]`
    const names = Array.from({ length: 10_000 }, (_, index) => (index === 0 ? 'old' : `old-${index + 1}`))
    const entries = Object.fromEntries(names.map((name) => [name, at(`${name}.png`)]))
    const order = Object.fromEntries(names.map((name, index) => [name, index + 1]))
    const { runs } = await pairs({ rows, entries, order })
    expect(Object.values(runs)).toEqual(names.map((name) => `${name}.png`))
  })

  it('names a file to copy only inside the folder of the manifest', async () => {
    const other = folderWith({ 'fox.png': 'a fox' })
    const folder = folderWith({ 'former/fox.png': 'a fox' })
    symlinkSync(other, join(folder, 'link'))
    const [row] = await entriesOf('[{ name: fox, kind: image, prompt: x }]', { folder })
    if (row === undefined) throw new Error('the manifest has a row')
    const sha256 = createHash('sha256').update('a fox').digest('hex')
    const copied = async (file: string) => {
      const locked = entry({ made: { ...made, file, sha256, bytes: 5 } })
      const disk = diskOf({
        ...{ folder, entries: [row], lock: NO_LOCK },
        ...{ keepsFiles: () => false, allowOutside: false },
      })
      const [output] = await disk.lookAt(row, locked)
      return output?.fact
    }
    const from = join(folder, 'former', 'fox.png')
    expect(await copied('former/fox.png')).toEqual({ is: 'missing', elsewhere: from })
    for (const file of [`../${basename(other)}/fox.png`, join(other, 'fox.png'), 'link/fox.png'])
      expect(await copied(file)).toEqual({ is: 'missing', elsewhere: undefined })
  })
})
