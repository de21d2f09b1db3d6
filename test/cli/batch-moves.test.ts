/** `rushes batch` after rows were renamed, moved and reordered: each keeps its own picture, and no file of others is touched. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { link } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { expect, it } from 'vitest'
import type { FileSystem } from '../../src/host/file-system.js'
import { builtInSchema } from '../../src/protocol/models.js'
import { createFamily, type Row, SHEET, sha256 } from '../support/family.js'
import { createFamilyEngine, outputOf, temporaryFolder, usageErrorOf } from '../support/index.js'

type AnyRow = Readonly<Record<string, unknown>>

const PROMPT = 'a fox, flat icon'

const start = async (rows: readonly AnyRow[], options: Parameters<typeof createFamily>[1] = {}) => {
  const family = await createFamily([], { engine: createFamilyEngine({ isDistinct: true }), ...options })
  const write = (next: readonly AnyRow[]) => family.write(next as readonly Row[])
  write(rows)
  /** Contents of the file of each row, by the name of the row. */
  const contents = (): Readonly<Record<string, string>> =>
    Object.fromEntries(
      Object.entries(family.lock() as Record<string, { file: string }>).map(([name, { file }]) => [
        name,
        readFileSync(family.path(file)).toString('latin1'),
      ]),
    )
  return { ...family, write, contents }
}

interface Move {
  readonly before: readonly AnyRow[]
  readonly after: readonly AnyRow[]
  /** The name of each row after the move, and the name that it had before. */
  readonly was: Readonly<Record<string, string>>
  /** Files after the move. */
  readonly files: readonly string[]
}

const row = (fields: AnyRow): AnyRow => ({ prompt: PROMPT, ...fields })

const MOVES: Readonly<Record<string, Move>> = {
  'an output with count 2 that moves to another folder, and a film of its first run': {
    before: [
      row({ output: 'assets/fox.png', count: 2 }),
      { name: 'film', kind: 'video', prompt: 'it runs', image_urls: ['row:assets/fox.png'] },
    ],
    after: [
      row({ output: 'img/fox.png', count: 2 }),
      { name: 'film', kind: 'video', prompt: 'it runs', image_urls: ['row:img/fox.png'] },
    ],
    was: { 'img/fox.png': 'assets/fox.png', 'img/fox-2.png': 'assets/fox-2.png', film: 'film' },
    files: ['img/fox.png', 'img/fox-2.png', 'film.mp4'],
  },
  'two rows of one prompt that get other names and outputs': {
    before: [row({ name: 'z' }), row({ name: 'y' })],
    after: [row({ name: 'b' }), row({ name: 'a' })],
    // Equal rows take the entries in the order of the lock file.
    was: { b: 'y', a: 'z' },
    files: ['b.png', 'a.png'],
  },
  'a film that gets the name of the picture that it is made from': {
    before: [
      row({ name: 'shot' }),
      { name: 'film', kind: 'video', prompt: PROMPT, image_urls: ['row:shot'] },
    ],
    after: [
      row({ name: 'frame' }),
      { name: 'shot', kind: 'video', prompt: PROMPT, image_urls: ['row:frame'] },
    ],
    was: { frame: 'shot', shot: 'film' },
    files: ['frame.png', 'shot.mp4'],
  },
  'two outputs of one prompt whose letter case changes': {
    before: [row({ output: 'Owl.png' }), row({ output: 'Fox.png' })],
    after: [row({ output: 'fox.png' }), row({ output: 'owl.png' })],
    was: { 'fox.png': 'Fox.png', 'owl.png': 'Owl.png' },
    files: ['fox.png', 'owl.png'],
  },
}

it.each(Object.entries(MOVES))(
  'each row keeps its own picture, and nothing is paid again, after this move: %s',
  async (_, { before, after, was, files }) => {
    const { run, created, contents, write, lock, service } = await start(before)
    outputOf(await run())
    const old = contents()
    created()
    write(after)
    outputOf(await run([], { env: { RUSHES_API_KEY: '' } }))
    expect(service.requests).toEqual([])
    const now = contents()
    expect(Object.fromEntries(Object.keys(was).map((name) => [name, now[name]]))).toEqual(
      Object.fromEntries(Object.entries(was).map(([name, oldName]) => [name, old[oldName]])),
    )

    expect(Object.values(lock() as Record<string, { file: string }>).map(({ file }) => file)).toEqual(
      expect.arrayContaining([...files]),
    )
  },
)

const input = builtInSchema('image')
const models = ['acme/one', 'acme/two'].map((name) => ({
  document: { name, kind: 'image' as const, input },
}))
const withModel = (model: string) => ({ env: { RUSHES_IMAGE_MODEL: model } })
const without = withModel('')

it('rows whose models come from the environment stay up to date without it, and need it when they are renamed', async () => {
  const before = [row({ name: 'fox', output: 'fox.png', count: 2 })]
  const { run, created, write } = await start(before, { models })
  outputOf(await run('--only fox.png', withModel('acme/one')))
  outputOf(await run('--only fox-2', withModel('acme/two')))
  expect(created()).toEqual([PROMPT, PROMPT])
  outputOf(await run('--check', without))
  write([row({ name: 'vixen', output: 'vixen.png', count: 2 })])
  expect(usageErrorOf(await run([], without))).toContain('Not set: image model.')
  expect(created()).toEqual([])
})

it('a file that moves out of the folder of its manifest is printed with its new path', async () => {
  const { run, write } = await start([row({ name: 'fox' })])
  await run()
  const output = join(temporaryFolder(), 'fox.png')
  write([row({ name: 'fox', output })])
  expect(resolve(outputOf(await run('--allow-outside')).trim())).toBe(output)
})

const [NFC, NFD] = ['café'.normalize('NFC'), 'café'.normalize('NFD')]
const pose = { name: 'pose', prompt: 'it sits', output: `${NFD}-pose.png` }

it('two Unicode forms of one name or output match in --only, in row: and in the lock file', async () => {
  const sheet = { ...row({ name: NFC }), output: 'sheet.png' }
  const { run, created, write, lock, editLock } = await start([
    sheet,
    { ...pose, image_urls: [`row:${NFD}`] },
    { name: 'tea', prompt: 'tea' },
  ])
  outputOf(await run(`--only ${NFD} --only ${NFC}-pose.png`))
  expect(created()).toEqual([PROMPT, pose.prompt])
  expect(Object.keys(lock()).sort()).toEqual([NFC, 'pose'])
  editLock((runs) => {
    runs[NFD] = runs[NFC] ?? {}
    delete runs[NFC]
  })
  write([
    { ...sheet, name: NFD },
    { ...pose, image_urls: [`row:${NFC}`] },
  ])
  expect(await run()).toMatchObject({ code: 0 })
  expect(created()).toEqual([])
})

const MOVED = { ...SHEET, output: 'img/sheet.png' }
const textOf = (path: string) => readFileSync(path, 'utf8')

/** A batch whose row is made, and then gets another output in a folder that exists. */
async function moving() {
  const family = await createFamily([SHEET])
  await family.run()
  family.created()
  family.write([MOVED])
  mkdirSync(family.path('img'))
  return family
}

/** Two made rows that swap their outputs, and a third row. */
async function swapping() {
  const outputs = (fox: string, hen: string) => [
    { name: 'fox', prompt: 'a fox', output: fox },
    { name: 'hen', prompt: 'a hen', output: hen },
    SHEET,
  ]
  const family = await createFamily(outputs('a.png', 'b.png'))
  await family.run()
  family.created()
  family.write(outputs('b.png', 'a.png'))
  return { ...family, sums: () => ['a.png', 'b.png'].map((name) => sha256(family.path(name))) }
}

it('a new file at the old path of a row that has moved stays', async () => {
  const { run, path, lock } = await moving()
  renameSync(path('sheet.png'), path('img/sheet.png'))
  writeFileSync(path('sheet.png'), 'mine')
  outputOf(await run())
  expect([lock().sheet.file, textOf(path('sheet.png'))]).toEqual(['img/sheet.png', 'mine'])
})

it('a file outside the folder that an edited lock file names stays, also with the same bytes', async () => {
  const { run, path, folder, editLock } = await moving()
  renameSync(path('sheet.png'), path('img/sheet.png'))
  const outside = join(folder, '..', 'outside.png')
  writeFileSync(outside, readFileSync(path('img/sheet.png')))
  editLock((runs) => {
    runs.sheet = { ...runs.sheet, file: '../outside.png' }
  })
  outputOf(await run())
  expect(existsSync(outside)).toBe(true)
})

/** Writes the file directly before the first link of a move is made. */
const editing = (path: string): FileSystem => ({
  link(from, to) {
    if (/\.move$/.test(to)) writeFileSync(path, 'mine')
    return link(from, to)
  },
})

it.each([
  ['new', 'img/sheet.png'],
  ['old', 'sheet.png'],
])('a file that appears at the %s path while a row moves stays, and nothing is sent', async (_, name) => {
  const { run, path, created } = await moving()
  const made = sha256(path('sheet.png'))
  const { code, stderr } = await run([], { fileSystem: editing(path(name)) })
  expect([code, created()]).toEqual([12, []])
  expect(stderr).toContain('Nothing was sent')
  expect(textOf(path(name))).toBe('mine')
  if (name !== 'sheet.png') expect(sha256(path('sheet.png'))).toBe(made)
})

it('the file of a row that --only leaves out stays', async () => {
  const { run, created, sums } = await swapping()
  const before = sums()
  const message = usageErrorOf(await run('--only fox'))
  expect(message).toContain('b.png (fox, line 1): the file of "hen", which --only leaves out')
  expect(message).not.toContain('--overwrite')
  expect([created(), sums()]).toEqual([[], before])
})

it('a row that --only leaves out keeps its picture when a selected row gets its earlier prompt', async () => {
  const { run, write, created, contents } = await start([row({ name: 'fox' })])
  await run()
  const { fox } = contents()
  created()
  write([{ name: 'fox', prompt: 'a wolf' }, row({ name: 'vixen' })])
  outputOf(await run('--only vixen'))
  expect(created()).toEqual([PROMPT])
  expect(contents().fox).toBe(fox)
})

it('a file that a killed batch was moving stays while --only leaves its row out', async () => {
  const { run, path, created, sums } = await swapping()
  const [fox, hen = ''] = sums()
  // Both are linked beside their new names, and only the file of fox has its name.
  const linked = path(`.a.png.${hen.slice(0, 12)}.move`)
  renameSync(path('b.png'), linked)
  copyFileSync(path('a.png'), path('b.png'))
  outputOf(await run('--only sheet'))
  expect(sha256(linked)).toBe(hen)
  outputOf(await run())
  expect(created()).toEqual([])
  expect(sums()).toEqual([hen, fox])
})

it('a move that was killed after it replaced the file of another row ends in the lock file', async () => {
  const { run, write, created, path, lock } = await createFamily([
    { name: 'fox', prompt: 'a fox' },
    { name: 'hen', prompt: 'a hen' },
  ])
  await run()
  const fox = sha256(path('fox.png'))
  created()
  // hen.png has the bytes of the fox, and fox.png is not removed yet.
  copyFileSync(path('fox.png'), path('hen.png'))
  write([
    { name: 'fox', prompt: 'a wolf' },
    { name: 'hen', prompt: 'a fox' },
  ])
  outputOf(await run())
  expect(created()).toEqual(['a wolf'])
  expect(lock().hen).toMatchObject({ file: 'hen.png', sha256: fox })
  expect(sha256(path('hen.png'))).toBe(fox)
})
