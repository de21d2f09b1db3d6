/** Manifests with a matrix, from the command line: what is planned, selected, created and not created again. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createCliService } from '../support/cli.js'
import { temporaryFolder } from '../support/service.js'

const MANIFEST = `defaults: { kind: image }
runs:
  - name: icon-{animal}-{quality}
    prompt: "{animal.text}, flat icon"
    output: icons/{animal}/{quality}.png
    matrix:
      animal:
        - { name: fox, text: a red fox }
        - { name: bear, text: a brown bear }
      quality: [basic, high]
    exclude: [{ animal: bear, quality: high }]
  - { name: iceberg, prompt: an iceberg }
`

/** The same as rows of their own, with other names for two of them, in JSON. */
const WRITTEN_OUT = {
  runs: [
    { name: 'iceberg', kind: 'image', prompt: 'an iceberg' },
    {
      name: 'fox',
      kind: 'image',
      quality: 'basic',
      prompt: 'a red fox, flat icon',
      output: 'icons/fox/basic.png',
    },
    {
      name: 'fox-2',
      kind: 'image',
      prompt: 'a red fox, flat icon',
      quality: 'high',
      output: 'icons/fox/high.png',
    },
    {
      prompt: 'a brown bear, flat icon',
      name: 'icon-bear-basic',
      kind: 'image',
      quality: 'basic',
      output: 'icons/bear/basic.png',
    },
  ],
}

async function createMatrix(text = MANIFEST) {
  const service = await createCliService()
  const folder = temporaryFolder()
  const path = join(folder, 'shots.yaml')
  const write = (next: string) => writeFileSync(path, next)
  write(text)
  return {
    folder,
    write,
    run: (...words: string[]) => service.run(['batch', path, ...words]),
    lock: () => JSON.parse(readFileSync(join(folder, 'shots.lock.json'), 'utf8')).runs,
    created: () =>
      service.requests
        .filter(({ method }) => method === 'POST')
        .map(({ body }) => JSON.parse(Buffer.from(body ?? []).toString()).input.prompt),
    files: () =>
      readdirSync(folder, { recursive: true })
        .map(String)
        .filter((name) => name.endsWith('.png'))
        .sort(),
  }
}

describe('a batch with a matrix', () => {
  it('plans its combinations under their own names, and creates each of them once', async () => {
    const batch = await createMatrix()
    expect(await batch.run('--dry-run')).toMatchObject({
      code: 0,
      stdout: `create\ticon-fox-basic\ticons/fox/basic.png\tmissing
create\ticon-fox-high\ticons/fox/high.png\tmissing
create\ticon-bear-basic\ticons/bear/basic.png\tmissing
create\ticeberg\ticeberg.{ext}\tmissing
`,
      stderr: '4 runs: 4 to create; at least 8 requests\n',
    })
    expect((await batch.run()).code).toBe(0)
    expect(batch.created().sort()).toEqual([
      'a brown bear, flat icon',
      'a red fox, flat icon',
      'a red fox, flat icon',
      'an iceberg',
    ])
    expect(batch.files()).toEqual([
      'iceberg.png',
      'icons/bear/basic.png',
      'icons/fox/basic.png',
      'icons/fox/high.png',
    ])
    expect(Object.keys(batch.lock())).toEqual([
      'iceberg',
      'icon-bear-basic',
      'icon-fox-basic',
      'icon-fox-high',
    ])
    expect(await batch.run('--check')).toMatchObject({ code: 0, stderr: '4 runs: 4 up to date\n' })
    const { stdout } = await batch.run('--check', '--json')
    expect(JSON.parse(stdout.split('\n')[1] ?? '')).toMatchObject({ name: 'icon-fox-high', line: 3 })
  })

  it('creates again only the combinations of a value that changed', async () => {
    const batch = await createMatrix()
    await batch.run()
    batch.write(MANIFEST.replace('a brown bear', 'a polar bear'))
    expect(await batch.run()).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/4 runs: 1 created, 3 up to date/),
    })
    expect(batch.created().slice(4)).toEqual(['a polar bear, flat icon'])
  })

  it.each([
    ['rows that become a matrix', JSON.stringify(WRITTEN_OUT), MANIFEST],
    ['a matrix that becomes rows', MANIFEST, JSON.stringify(WRITTEN_OUT, null, 2)],
    [
      'keys in another order, and comments',
      MANIFEST,
      MANIFEST.replace(/( {6}animal:[\s\S]*?)( {6}quality: .*\n)/, '$2$1 # animals\n'),
    ],
  ])('creates nothing for %s', async (_, before, after) => {
    const batch = await createMatrix(before)
    expect((await batch.run()).code).toBe(0)
    batch.write(after)
    expect(await batch.run()).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^4 runs: 4 up to date/m),
    })
    expect(batch.created()).toHaveLength(4)
  })

  it.each([
    ['icon-*', ['icons/bear/basic.png', 'icons/fox/basic.png', 'icons/fox/high.png']],
    ['icon-{animal}-{quality}', ['icons/bear/basic.png', 'icons/fox/basic.png', 'icons/fox/high.png']],
    ['icon-fox-*', ['icons/fox/basic.png', 'icons/fox/high.png']],
    ['icons/*/basic.png', ['icons/bear/basic.png', 'icons/fox/basic.png']],
    ['icon-fox-high', ['icons/fox/high.png']],
  ])('--only %s', async (glob, files) => {
    const batch = await createMatrix()
    expect((await batch.run('--only', glob)).code).toBe(0)
    expect(batch.files()).toEqual(files)
  })

  it('suggests the group for the beginning of its names', async () => {
    const batch = await createMatrix()
    expect(await batch.run('--only', 'icon', '--check')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        '--only icon does not match the name or output of any run. Did you mean "icon*"?',
      ),
    })
  })

  it('has more than a thousand combinations only where --max-runs allows them', async () => {
    const numbers = (count: number) => Array.from({ length: count }, (_, at) => at)
    const row = {
      name: '{a}-{b}',
      kind: 'image',
      prompt: '{a} {b}',
      matrix: { a: numbers(51), b: numbers(20) },
    }
    const batch = await createMatrix(JSON.stringify([row]))
    expect(await batch.run('--check')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        'shots.yaml:1:54: the matrices of the manifest have 1020 combinations; the limit is 1000 (--max-runs 1020 allows them)',
      ),
    })
    expect((await batch.run('--check', '--max-runs', '1020')).code).toBe(10)
    expect(await batch.run('--dry-run', '--max-runs', '1020')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('1020 runs: 1020 to create'),
    })
  })

  it('is exit 2 for mistakes, each once and with its place, before anything is sent', async () => {
    const batch = await createMatrix(
      MANIFEST.replace('{animal.text}', '{animal.txt}').replace(
        'animal: bear, quality',
        'animal: beer, quality',
      ),
    )
    const { code, stderr } = await batch.run()
    expect({ code, created: batch.created() }).toEqual({ code: 2, created: [] })
    expect(stderr).toMatch(/The manifest .* has 2 problems; nothing was sent\./)
    expect(stderr).toMatch(
      /shots\.yaml:4:13: unknown placeholder \{animal\.txt\}\. Did you mean \{animal\.text\}\?$/m,
    )
    expect(stderr).toMatch(/shots\.yaml:11:25: "beer" is not a value of animal\. Did you mean "bear"\?$/m)
  })
})
