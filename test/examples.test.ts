/**
 * The manifests of examples/ and their page: all rows in process with an instant engine, and what the page says is created again
 * after an edit.
 */
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import picomatch from 'picomatch'
import { expect, it } from 'vitest'
import {
  createCliService,
  createFamilyEngine,
  ONE_PIXEL_PNG,
  objects,
  temporaryFolder,
} from './support/index.js'
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

/**
 * `what`: the first cell of its row on the page. `from`: a text of the manifest, or another file of the folder. `created`:
 * globs of the names that are created again.
 */
type Edit = readonly [what: string, from: string, to: string | Uint8Array, ...created: string[]]

const EDITS: Readonly<Record<string, readonly Edit[]>> = {
  'examples/sprites/sprites.yaml': [
    ['the text of the fox', 'green hood', 'blue hood', 'fox-*'],
    ['the text of `walk`', 'middle of a step', 'end of a step', '*-walk-*'],
    ['the text of `back`', 'seen from behind', 'from the back', '*-back'],
    ['the prompt of the sheets', 'relaxed pose', 'proud pose', '*'],
  ],
  'examples/shop/shop.yaml': [
    ['the photo, `backpack.png`', 'backpack.png', ONE_PIXEL_PNG, '{pack,street,trail}-*'],
    ['the text of the trail', 'mossy rock', 'fallen tree', 'set-trail', 'trail-*'],
    ['the text of `quarter`', '45 degrees', '30 degrees', 'pack-quarter', '*-quarter-*'],
    ['the text of `story`', 'the lower half', 'the upper half', '*-story'],
  ],
  'examples/shop/catalogue.csv': [
    ['the prompt of `set`', 'Oak table', 'Pine table', '*'],
    ['the prompt of `honey`', 'wooden dipper', 'steel spoon', 'honey', 'together'],
  ],
  'examples/trailer/trailer.yaml': [
    ['the prompt of the keeper', 'grey braid', 'white braid', 'keeper', '*-{stairs,lamp}-*'],
    ['the text of `coast`', 'storm clouds', 'dark clouds', '*-coast-*'],
    ['the movement of `coast`', 'flies slowly', 'rushes', 'clip-coast-*'],
    ['`resolution`', 'resolution: 720p', 'resolution: 1080p', 'clip-*'],
  ],
}
const MANIFESTS = Object.keys(EDITS)

it.each(MANIFESTS)(
  '%s creates every row once, and plans for each edit what docs/examples.md states',
  async (manifest) => {
    const folder = copyTo(temporaryFolder())
    const path = join(folder, manifest)
    const service = await createCliService({ engine: createFamilyEngine() })
    const run = async (...flags: readonly string[]) => {
      const { code, stdout, stderr } = await service.run(['batch', path, '--json', ...flags])
      expect(code, stderr).toBe(0)
      return objects(stdout)
    }
    const namesIn = (
      rows: readonly { readonly name: string; readonly [key: string]: unknown }[],
      key: string,
      value: string,
    ) => rows.flatMap((row) => (row[key] === value ? row.name : [])).sort()
    const names = namesIn(await run('--local', '--dry-run'), 'action', 'create')
    const [, maxRuns = ''] = /--max-runs (\d+)$/m.exec(blocksOf(manifest)[0] ?? '') ?? []
    expect(Number(maxRuns)).toBe(names.length)
    const [, only] = /--only '(.*)'$/m.exec(blocksOf(manifest)[0] ?? '') ?? []
    expect(names).toContain(only)

    expect(namesIn(await run('--max-runs', maxRuns), 'result', 'created')).toEqual(names)
    expect((await run()).at(-1)).toMatchObject({ summary: { up_to_date: names.length, created: 0 } })
    for (const [what, from, to, ...created] of EDITS[manifest] ?? []) {
      const isText = typeof to === 'string'
      const edited = isText ? path : join(dirname(path), from)
      const before = readFileSync(edited)
      if (isText) expect(before.toString().split(from)).toHaveLength(2)
      writeFileSync(edited, isText ? before.toString().replace(from, to) : to)
      const expected = names.filter((name) => picomatch.isMatch(name, created))
      expect(namesIn(await run('--dry-run'), 'action', 'create'), what).toEqual(expected)
      writeFileSync(edited, before)
      expect(PAGE).toContain(`\n| ${what} | ${expected.length} |`)
    }
  },
)

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
      .map(([what]) => what),
  )
})
