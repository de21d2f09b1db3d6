/**
 * The manifests of examples/ and their page: all rows in process with an instant engine, and what the page says is created again
 * after an edit.
 */
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import picomatch from 'picomatch'
import sharp from 'sharp'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { entriesOf } from './batch/folder.js'
import { createFamilyEngine } from './support/engines.js'
import { createCliService, ONE_PIXEL_PNG, temporaryFolder } from './support/index.js'
import { ROOT } from './support/project.js'

const PAGE = readFileSync(join(ROOT, 'docs', 'examples.md'), 'utf8')

/** Returns the command blocks of the page that name this manifest. */
const blocksOf = (manifest: string): readonly string[] =>
  [...PAGE.matchAll(/^```bash\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) =>
    block.includes(manifest) ? [block] : [],
  )

/** Copies the examples without their generated files. */
function copyTo(folder: string): string {
  const isSource = (path: string) => basename(path) !== 'assets' && !path.endsWith('.lock.json')
  cpSync(join(ROOT, 'examples'), join(folder, 'examples'), { recursive: true, filter: isSource })
  return folder
}

interface Edit {
  /** The first cell of its row on the page. */
  readonly what: string
  /** A text of the manifest, or another file of the folder. */
  readonly from: string
  readonly to: string | Uint8Array
  /** Globs of the names that are created again. */
  readonly created: readonly string[]
}

const EDITS: Readonly<Record<string, readonly Edit[]>> = {
  'examples/sprites/sprites.yaml': [
    { what: 'the text of the fox', from: 'green hood', to: 'blue hood', created: ['fox-*'] },
    { what: 'the text of `walk`', from: 'middle of a step', to: 'end of a step', created: ['*-walk-*'] },
    { what: 'the text of `back`', from: 'seen from behind', to: 'from the back', created: ['*-back'] },
    { what: 'the prompt of the sheets', from: 'relaxed pose', to: 'proud pose', created: ['*'] },
  ],
  'examples/shop/shop.yaml': [
    {
      what: 'the photo, `backpack.png`',
      from: 'backpack.png',
      to: ONE_PIXEL_PNG,
      created: ['{pack,street,trail}-*'],
    },
    {
      what: 'the text of the trail',
      from: 'mossy rock',
      to: 'fallen tree',
      created: ['set-trail', 'trail-*'],
    },
    {
      what: 'the text of `quarter`',
      from: '45 degrees',
      to: '30 degrees',
      created: ['pack-quarter', '*-quarter-*'],
    },
    { what: 'the text of `story`', from: 'the lower half', to: 'the upper half', created: ['*-story'] },
  ],
  'examples/shop/catalogue.csv': [
    { what: 'the prompt of `set`', from: 'Oak table', to: 'Pine table', created: ['*'] },
    {
      what: 'the prompt of `honey`',
      from: 'wooden dipper',
      to: 'steel spoon',
      created: ['honey', 'together'],
    },
  ],
  'examples/trailer/trailer.yaml': [
    {
      what: 'the prompt of the keeper',
      from: 'grey braid',
      to: 'white braid',
      created: ['keeper', '*-{stairs,lamp}-*'],
    },
    { what: 'the text of `coast`', from: 'storm clouds', to: 'dark clouds', created: ['*-coast-*'] },
    { what: 'the movement of `coast`', from: 'flies slowly', to: 'rushes', created: ['clip-coast-*'] },
    { what: '`resolution`', from: 'resolution: 720p', to: 'resolution: 1080p', created: ['clip-*'] },
  ],
}
const MANIFESTS = Object.keys(EDITS)

const objectsIn = (text: string) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))

describe.each(MANIFESTS)('%s', (manifest) => {
  const text = readFileSync(join(ROOT, manifest), 'utf8')

  it('contains ten to thirty rows, and uses every placeholder', async () => {
    const folder = join(ROOT, dirname(manifest))
    const entries = await entriesOf(text, { folder, name: `shots${extname(manifest)}` })
    expect(entries.length).toBeGreaterThanOrEqual(10)
    expect(entries.length).toBeLessThanOrEqual(30)
    expect(entries.filter(({ input }) => /[{}]/.test(JSON.stringify(input.prompt)))).toEqual([])
    expect(unusedPlaceholders(manifest, text)).toEqual([])
  })

  it('creates every row once, and plans for each edit what docs/examples.md states', async () => {
    const folder = copyTo(temporaryFolder())
    const path = join(folder, manifest)
    const service = await createCliService({ engine: createFamilyEngine() })
    const run = async (...flags: readonly string[]) => {
      const { code, stdout, stderr } = await service.run(['batch', path, '--json', ...flags])
      expect(code, stderr).toBe(0)
      return objectsIn(stdout)
    }
    const created = (objects: readonly { result?: string; name: string }[]) =>
      objects.flatMap(({ result, name }) => (result === 'created' ? [name] : [])).sort()
    const planned = (objects: readonly { action?: string; name: string }[]) =>
      objects.flatMap(({ action, name }) => (action === 'create' ? [name] : [])).sort()
    const names = (await run('--local', '--dry-run')).flatMap(({ name }) => name ?? []).sort()
    const [, maxRuns = ''] = /--max-runs (\d+)$/m.exec(blocksOf(manifest)[0] ?? '') ?? []
    expect(Number(maxRuns)).toBe(names.length)
    const [, only] = /--only '(.*)'$/m.exec(blocksOf(manifest)[0] ?? '') ?? []
    expect(names).toContain(only)

    expect(created(await run('--max-runs', maxRuns))).toEqual(names)
    expect((await run()).at(-1)).toMatchObject({ summary: { up_to_date: names.length, created: 0 } })
    for (const edit of EDITS[manifest] ?? []) {
      const edited = typeof edit.to === 'string' ? path : join(dirname(path), edit.from)
      const before = readFileSync(edited)
      if (typeof edit.to === 'string') expect(before.toString().split(edit.from)).toHaveLength(2)
      writeFileSync(
        edited,
        typeof edit.to === 'string' ? before.toString().replace(edit.from, edit.to) : edit.to,
      )
      const isExpected = picomatch([...edit.created])
      const expected = names.filter((name) => isExpected(name))
      expect(planned(await run('--dry-run')), edit.what).toEqual(expected)
      writeFileSync(edited, before)
      expect(PAGE).toContain(`\n| ${edit.what} | ${expected.length} |`)
    }
  })
})

it('docs/examples.md shows the commands to plan, try and create each manifest', () => {
  for (const manifest of MANIFESTS) {
    const [block = '', ...more] = blocksOf(manifest)
    expect(more).toEqual([])
    expect(block.replace(/'.*'|\d+/g, '…')).toBe(
      ['--local --dry-run', '--local --only …', '--max-runs …']
        .map((flags) => `rushes batch ${manifest} ${flags}\n`)
        .join(''),
    )
  }
})

it('docs/examples.md lists every edit of the tests', () => {
  const rows = [...PAGE.matchAll(/^\| (.*?) \| \d+ \|/gm)].map(([, what]) => what)
  expect(rows).toEqual(
    Object.values(EDITS)
      .flat()
      .map(({ what }) => what),
  )
})

it('docs/examples.md shows three pictures of less than 150 KB', async () => {
  const pictures = [...PAGE.matchAll(/!\[.+\]\((.+)\)/g)].map(([, path = '']) => join(ROOT, 'docs', path))
  expect(pictures).toHaveLength(3)
  for (const picture of pictures) {
    expect(readFileSync(picture).length).toBeLessThan(150_000)
    expect((await sharp(picture).metadata()).format).toBe('jpeg')
  }
})

type Value = string | Readonly<Record<string, string>>

interface Row {
  readonly name: string
  readonly matrix?: Readonly<Record<string, readonly Value[]>>
}

/** Keys that the texts of their row do not contain, and fields of values that no row contains: rows share lists. */
function unusedPlaceholders(manifest: string, text: string): readonly string[] {
  if (!manifest.endsWith('.yaml')) return []
  const rows: readonly Row[] = parse(text).runs
  return rows.flatMap(({ matrix = {}, ...row }) =>
    Object.entries(matrix).flatMap(([key, values]) => {
      const fields = new Set(values.flatMap((value) => (typeof value === 'string' ? [] : Object.keys(value))))
      fields.delete('name')
      const unused = [...fields].filter((field) => !text.includes(`{${key}.${field}}`))
      const isUsed = JSON.stringify(row).includes(`{${key}}`)
      return [...(isUsed ? [] : [key]), ...unused.map((field) => `${key}.${field}`)].map(
        (word) => `${row.name}: ${word}`,
      )
    }),
  )
}
