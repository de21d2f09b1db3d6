/** `rushes batch` after rows were renamed, moved and reordered: each keeps its own picture, also among rows of equal input. */
import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { expect, it } from 'vitest'
import { builtInSchema } from '../../src/protocol/models.js'
import { createFamily, type Row } from '../support/family.js'
import { temporaryFolder } from '../support/index.js'

type AnyRow = Readonly<Record<string, unknown>>

const PROMPT = 'a fox, flat icon'
const PNG = Buffer.from('89504e470d0a1a0a0000000d4948445200000001000000010806000000', 'hex')

/** Each run has bytes of its own, also where the input is the same. */
const createEngine = () => {
  let runs = 0
  return {
    async render({ folder, kind }: { readonly folder: string; readonly kind: string }) {
      const isVideo = kind === 'video'
      const head = isVideo ? Buffer.from('\0\0\0\x18ftypmp42\0\0\0\0mp42isom', 'latin1') : PNG
      await writeFile(join(folder, 'file'), Buffer.concat([head, Buffer.from(`run ${++runs}`.padEnd(20))]))
      return [{ name: 'file', contentType: isVideo ? 'video/mp4' : 'image/png' }]
    },
  }
}

const start = async (rows: readonly AnyRow[], options: Parameters<typeof createFamily>[1] = {}) => {
  const family = await createFamily([], { engine: createEngine(), ...options })
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
  'a matrix [b, a] that gets another name': {
    before: [row({ name: 'icon-{x}', matrix: { x: ['b', 'a'] } })],
    after: [row({ name: 'sign-{x}', matrix: { x: ['b', 'a'] } })],
    was: { 'sign-b': 'icon-a', 'sign-a': 'icon-b' },
    files: ['sign-b.png', 'sign-a.png'],
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
  'each row keeps its own picture, and nothing is paid again, after the move of %s',
  async (_, { before, after, was, files }) => {
    const { run, created, contents, write, lock, folder, service } = await start(before)
    expect(await run()).toMatchObject({ code: 0 })
    const old = contents()
    created()
    write(after)
    expect(await run([], { env: { RUSHES_API_KEY: '' } })).toMatchObject({ code: 0 })
    expect(service.requests).toEqual([])
    const now = contents()
    expect(Object.fromEntries(Object.keys(was).map((name) => [name, now[name]]))).toEqual(
      Object.fromEntries(Object.entries(was).map(([name, oldName]) => [name, old[oldName]])),
    )
    for (const file of files) expect(filesBelow(folder)).toContain(file)
    expect(Object.values(lock() as Record<string, { file: string }>).map(({ file }) => file)).toEqual(
      expect.arrayContaining([...files]),
    )
    // The next batch has nothing to do, and nothing to report.
    expect((await run('--check')).code).toBe(0)
    expect((await run()).stderr).not.toMatch(/renamed/)
  },
)

const input = builtInSchema('image')
const models = ['acme/one', 'acme/two'].map((name) => ({
  document: { name, kind: 'image' as const, input },
}))
const withModel = (model: string) => ({ env: { RUSHES_IMAGE_MODEL: model } })
const without = withModel('')

it('rows whose models come from the environment stay up to date without a model in the environment, and keep their pictures when renamed', async () => {
  const before = [row({ name: 'fox', output: 'fox.png', count: 2 })]
  const { run, created, contents, write } = await start(before, { models })
  expect((await run('--only fox.png', withModel('acme/one'))).code).toBe(0)
  expect((await run('--only fox-2', withModel('acme/two'))).code).toBe(0)
  expect(created()).toEqual([PROMPT, PROMPT])
  const old = contents()
  expect(await run('--check', without)).toMatchObject({ code: 0 })
  write([row({ name: 'vixen', output: 'vixen.png', count: 2 })])
  expect(await run([], without)).toMatchObject({ code: 0 })
  expect(created()).toEqual([])
  expect(contents()).toEqual({ vixen: old.fox, 'vixen-2': old['fox-2'] })
})

it('a file that moves out of the folder of the manifest is printed with its new path', async () => {
  const { run, write } = await start([row({ name: 'fox' })])
  await run()
  const output = join(temporaryFolder(), 'fox.png')
  write([row({ name: 'fox', output })])
  expect(resolve((await run('--allow-outside')).stdout.trim())).toBe(output)
})

const [NFC, NFD] = ['café'.normalize('NFC'), 'café'.normalize('NFD')]
const pose = { name: 'pose', prompt: 'it sits' }

it.each([
  [NFC, NFD],
  [NFD, NFC],
])('two Unicode forms of one name match in --only, in row: and in the lock file', async (name, other) => {
  const sheet = { ...row({ name }), output: 'sheet.png' }
  const { run, created, write, lock, editLock } = await start([
    sheet,
    { ...pose, image_urls: [`row:${other}`] },
    { name: 'tea', prompt: 'tea' },
  ])
  expect(await run(`--only ${other} --only pose`)).toMatchObject({ code: 0 })
  expect(created()).toEqual([PROMPT, pose.prompt])
  expect(Object.keys(lock()).sort()).toEqual([NFC, 'pose'])
  editLock((runs) => {
    runs[NFD] = runs[NFC] ?? {}
    delete runs[NFC]
  })
  write([
    { ...sheet, name: other },
    { ...pose, image_urls: [`row:${name}`] },
  ])
  expect(await run()).toMatchObject({ code: 0, stderr: expect.not.stringContaining('renamed') })
  expect(created()).toEqual([])
})

const filesBelow = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true }).map((name) => String(name).replaceAll('\\', '/'))
