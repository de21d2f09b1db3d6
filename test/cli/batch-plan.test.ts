/** `rushes batch --check` and `--dry-run`: what is printed for each state of a row, and that nothing is sent or written. */
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ManifestEntry } from '../../src/batch/manifest/entry.js'
import { selectorFor } from '../../src/cli/batch/options.js'
import { CLIP, createFamily, RUN, SHEET, SIT } from '../support/family.js'
import {
  createCliService,
  filesBelow,
  objects,
  outputOf,
  runCli,
  temporaryFolder,
  usageErrorOf,
} from '../support/index.js'

const MANIFEST = `models: { image: rushes/preview-image, video: rushes/preview-video }
defaults: { kind: image }
runs:
  - name: fox
    prompt: a fox
  - name: hen
    prompt: a hen
    output: icons/hen.png
`

async function createPlan(text = MANIFEST) {
  const service = await createCliService()
  const folder = temporaryFolder()
  const manifest = join(folder, 'shots.yaml')
  const write = (next: string) => writeFileSync(manifest, next)
  write(text)
  return {
    service,
    folder,
    write,
    /** Without address, key or network: as in a CI job that may not spend anything. */
    bare: (flags: string, env: Record<string, string> = {}) =>
      runCli(`batch ${manifest} ${flags}`, { home: service.home, env }),
    run: (flags = '') => service.run(`batch ${manifest} ${flags}`),
    path: (name: string) => join(folder, name),
    created: () => service.creates().map(({ input }) => input.prompt),
  }
}

type Place = Awaited<ReturnType<typeof createPlan>>

it.each([
  ['--check', 10],
  ['--dry-run', 0],
])('%s ends with exit %i while files are missing, without a key and without a write', async (flag, code) => {
  const { bare, folder } = await createPlan()
  const state = join(temporaryFolder(), 'state')
  expect(await bare(flag, { RUSHES_STATE_DIR: state })).toMatchObject({
    code,
    stdout: 'create\tfox\tfox.{ext}\tmissing\ncreate\then\ticons/hen.png\tmissing\n',
    stderr: '2 runs: 2 to create. No estimate: 2 runs without a price\n',
  })
  expect(existsSync(state)).toBe(false)
  expect(readdirSync(folder)).toEqual(['shots.yaml'])
})

it('--check --json prints an object for each row, and a summary', async () => {
  const { run, bare } = await createPlan()
  await run('--only fox')
  const { code, stdout } = await bare('--check --json')
  expect(code).toBe(10)
  const fox = { name: 'fox', action: 'up_to_date', reason: null, file: 'fox.png', line: 4 }
  const hen = { name: 'hen', action: 'create', reason: 'missing', file: 'icons/hen.png', line: 6 }
  const none = { download: 0, unconfirmed: 0, conflict: 0, blocked: 0, skip: 0, not_waited_for: [] }
  const sha256 = expect.stringMatching(/^[0-9a-f]{64}$/)
  const known = { file: 'fox.png', sha256, bytes: expect.any(Number) }
  expect(objects(stdout)).toEqual([
    expect.objectContaining({ ...fox, outputs: [{ ...known, state: 'in_place' }] }),
    expect.objectContaining({ ...hen, outputs: [] }),
    {
      summary: {
        ...{ ...none, total: 2, up_to_date: 1, create: 1 },
        ...{ estimate: null, currency: 'credits', without_price: 1 },
        models: { 'rushes/preview-image': 1 },
        estimates: { 'rushes/preview-image': null },
      },
    },
  ])
})

it('a manifest with mistakes is a usage error with the place of each', async () => {
  const place = await createPlan()
  place.write(
    MANIFEST.replace('a fox', 'a fox\n    qualty: high').replace('a hen', 'a hen\n    quality: hihg'),
  )
  const message = usageErrorOf(await place.bare('--check'))
  expect(message).toMatch(/The manifest .* has 2 problems; nothing was sent\./)
  expect(message).toMatch(/shots\.yaml:6: .*qualty.*quality/)
  expect(message).toMatch(/shots\.yaml:9: .*hihg.*high/)
})

describe('--check of a batch that is up to date', () => {
  let place: Place
  let saved: string
  beforeAll(async () => {
    place = await createPlan()
    await place.run()
    saved = join(temporaryFolder(), 'saved')
    cpSync(place.folder, saved, { recursive: true })
  })
  afterEach(() => {
    rmSync(place.folder, { recursive: true })
    cpSync(saved, place.folder, { recursive: true })
  })

  it('ends with exit 0, sends nothing and changes no file', async () => {
    const contents = () => filesBelow(place.folder).map((name) => [name, readFileSync(place.path(name))])
    const before = contents()
    place.service.requests.length = 0
    expect(await place.bare('--check')).toMatchObject({
      code: 0,
      stdout: 'up_to_date\tfox\tfox.png\t\nup_to_date\then\ticons/hen.png\t\n',
      stderr: '2 runs: 2 up to date\n',
    })
    expect(contents()).toEqual(before)
    expect(place.service.requests).toEqual([])
  })

  it('with --json says what exists at the path of each output that the lock file knows', async () => {
    const state = async () => objects((await place.bare('--check --json')).stdout)[0].outputs[0].state
    writeFileSync(place.path('fox.png'), 'by hand')
    expect(await state()).toBe('different')
    rmSync(place.path('fox.png'))
    expect(await state()).toBe('missing')
  })

  it('with --only ends with exit 0 although another row is not up to date', async () => {
    rmSync(place.path('fox.png'))
    outputOf(await place.bare('--check --only hen'))
  })

  it.each<[string, () => void, RegExp]>([
    [
      'another parameter',
      () => place.write(MANIFEST.replace('a fox', 'a fox\n    quality: high')),
      /^create\tfox\t/m,
    ],
    ['a changed file', () => writeFileSync(place.path('fox.png'), 'mine'), /^conflict\tfox\t/m],
    [
      'a link to nothing at the path of a file',
      () => {
        rmSync(place.path('fox.png'))
        symlinkSync('nowhere', place.path('fox.png'))
      },
      /^conflict\tfox\t/m,
    ],
  ])('notices %s', async (_, change, says) => {
    change()
    const { code, stdout } = await place.bare('--check')
    expect(code).toBe(10)
    expect(stdout).toMatch(says)
  })
})

it('a plan with --only has the rows that are selected, and counts the others', async () => {
  const { bare } = await createPlan()
  expect(await bare('--dry-run --only hen')).toMatchObject({
    stdout: 'create\then\ticons/hen.png\tmissing\n',
    stderr: '2 runs: 1 to create, 1 skipped. No estimate: 1 run without a price\n',
  })
  const [hen, last, ...more] = objects((await bare('--check --only hen --json')).stdout)
  expect([hen.name, more]).toEqual(['hen', []])
  expect(last.summary).toMatchObject({ total: 2, create: 1, skip: 1 })
})

it('--dry-run prints the plan and ends with exit 2 if a model is not set', async () => {
  const { bare } = await createPlan(MANIFEST.replace(/^models.*\n/, ''))
  expect(await bare('--dry-run')).toMatchObject({
    code: 2,
    stdout: 'create\tfox\tfox.{ext}\tmissing\ncreate\then\ticons/hen.png\tmissing\n',
    stderr: expect.stringContaining('error: Not set: image model.'),
  })
})

it('--dry-run ends with exit 2 when the batch would', async () => {
  const { bare, run, path, service } = await createPlan()
  const many = { code: 2, stderr: expect.stringContaining('would create 2 runs, but --max-runs allows 1') }
  expect(await bare('--dry-run --max-runs 1')).toMatchObject(many)
  expect(await run('--max-runs 1')).toMatchObject(many)
  writeFileSync(path('fox.png'), 'mine')
  const conflict = { code: 2, stderr: expect.stringContaining('fox.png (fox, line 4)') }
  expect(await bare('--dry-run')).toMatchObject(conflict)
  expect(await run()).toMatchObject({ ...conflict, stdout: '' })
  expect(service.requests).toEqual([])
  expect(readFileSync(path('fox.png'), 'utf8')).toBe('mine')
  outputOf(await bare('--dry-run --overwrite'))
})

const HEN = { name: 'hen', prompt: 'a hen' }
const OWL = { name: 'owl', prompt: 'an owl' }
const BOTH = { name: 'both', prompt: 'two foxes', image_urls: ['row:run', 'row:sit'] }
it('a plan has the reason for each row, on a terminal in columns', async () => {
  const { run, write, path } = await createFamily([SHEET, RUN, CLIP, SIT, BOTH, HEN, OWL])
  await run()
  rmSync(path('owl.png'))
  const hen = { ...HEN, model: 'acme/other' }
  write([{ ...SHEET, quality: 'high' }, RUN, CLIP, { ...SIT, prompt: 'it sits' }, BOTH, hen, OWL])
  const plan = await run('--dry-run', { tty: { stdout: true }, columns: 120 })
  expect(plan.stdout).toMatchInlineSnapshot(`
    "ACTION    NAME   FILE       REASON
    create    sheet  sheet.png  model or input changed
    create    run    run.png    model or input changed
    create    clip   clip.mp4   model or input changed
    create    sit    sit.png    model or input changed
    create    both   both.png   model or input changed
    create    hen    hen.png    model or input changed
    download  owl    owl.png    missing
    "
  `)
})

it('the plan of rows that use other rows has the sources of each row as JSON, and the runs of each model', async () => {
  const { run } = await createFamily()
  const [clip, ...others] = objects(outputOf(await run('--dry-run --json')))
  expect(clip).toMatchObject({ name: 'clip', uses: ['run'], hash: null, reason: 'missing' })
  expect(others.at(-1).summary).toMatchObject({
    create: 4,
    blocked: 0,
    models: { 'rushes/preview-image': 3, 'rushes/preview-video': 1 },
  })
})

describe('a matrix', () => {
  const MATRIX = `models: { image: rushes/preview-image }
defaults: { kind: image }
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
  const FOX_BASIC = 'create\ticon-fox-basic\ticons/fox/basic.png\tmissing\n'
  const FOX_HIGH = 'create\ticon-fox-high\ticons/fox/high.png\tmissing\n'
  const BEAR = 'create\ticon-bear-basic\ticons/bear/basic.png\tmissing\n'

  it('creates each combination once, under its own name, also when it becomes rows of the same outputs, and these a matrix', async () => {
    const { run, bare, created, write, path } = await createPlan(MATRIX)
    expect(await bare('--dry-run')).toMatchObject({
      code: 0,
      stdout: `${FOX_BASIC}${FOX_HIGH}${BEAR}create\ticeberg\ticeberg.{ext}\tmissing\n`,
      stderr: '4 runs: 4 to create. No estimate: 4 runs without a price\n',
    })
    outputOf(await run())
    const [bear, fox] = ['a brown bear, flat icon', 'a red fox, flat icon']
    const prompts = [fox, fox, bear, 'an iceberg']
    expect(created()).toEqual(prompts)
    const { runs } = JSON.parse(readFileSync(path('shots.lock.json'), 'utf8'))
    expect(Object.keys(runs)).toEqual(['iceberg', 'icon-bear-basic', 'icon-fox-basic', 'icon-fox-high'])
    const asRows = `models: { image: rushes/preview-image }
defaults: { kind: image }
runs:
  - { name: iceberg, prompt: an iceberg }
  - { name: fox, quality: basic, prompt: "a red fox, flat icon", output: icons/fox/basic.png }
  - { name: fox-2, quality: high, prompt: "a red fox, flat icon", output: icons/fox/high.png }
  - { name: bear, quality: basic, prompt: "a brown bear, flat icon", output: icons/bear/basic.png }
`
    for (const text of [asRows, MATRIX]) {
      write(text)
      expect(await run()).toMatchObject({
        code: 0,
        stderr: expect.stringMatching(/^4 runs: 4 up to date/m),
      })
    }
    expect(created()).toEqual(prompts)
  })
})

const ENTRIES = [
  { name: 'fox', rowName: 'fox', output: 'icons/1.png' },
  { name: 'fox-2', rowName: 'fox', output: 'icons/2.png' },
  { name: 'owl', rowName: 'owl', output: 'owl.png' },
] as ManifestEntry[]

it.each([
  ['fox', ['fox', 'fox-2']],
  ['fox-2', ['fox-2']],
  ['o*', ['owl']],
  ['icons/*', ['fox', 'fox-2']],
])('--only %s selects runs by their names, the name of their row or their outputs', async (glob, names) => {
  const selects = await selectorFor([glob], ENTRIES)
  expect(ENTRIES.filter(selects).map(({ name }) => name)).toEqual(names)
})

it('--only reads a backslash as an escape', async () => {
  await expect(selectorFor(['icons\\*'], ENTRIES)).rejects.toMatchObject({ code: 'usage' })
})
