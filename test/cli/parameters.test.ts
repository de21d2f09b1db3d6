/**
 * A parameter of any type is one property of a document: here an added model has one of each, and everything that
 * follows from its document has to know it.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { writeJson } from '../../src/protocol/json.js'
import type { InputOf, ModelDocument, ParameterSchema } from '../../src/protocol/models.js'
import { builtInSchema, valueOfText } from '../../src/protocol/parameters.js'
import { createCliService, runCli, SET } from '../support/cli.js'
import { createInstantEngine } from '../support/engines.js'
import { misfits } from '../support/schemas.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const ADDED = {
  seed: { type: 'integer', description: 'where chance begins', minimum: 0, maximum: 4294967295 },
  guidance: { type: 'number', description: 'how closely to follow', minimum: 0.5 },
  transparent: { type: 'boolean', description: 'without a background' },
  steps: { type: 'integer', description: 'how many steps', enum: [4, 8] },
  strength: { type: 'number', description: 'how much to change', maximum: 1 },
  avoid: { type: 'string', description: 'what not to show' },
} as const

const documentOf = (
  kind: 'image' | 'video',
  added: Readonly<Record<string, ParameterSchema>>,
): ModelDocument => {
  const schema = builtInSchema(kind)
  const input = { ...schema, properties: { ...schema.properties, ...added } }
  return { name: `acme/${kind}`, kind, input }
}

const DOCUMENTS = [
  documentOf('image', ADDED),
  // The other model has a parameter of the same name and another type.
  documentOf('video', { seed: { type: 'string', description: 'a word' } }),
]
const ENV = { ...SET, RUSHES_IMAGE_MODEL: 'acme/image', RUSHES_VIDEO_MODEL: 'acme/video' }

const addTo = async (home: string) => {
  for (const document of DOCUMENTS) {
    const { code } = await runCli(['models', 'add', '-'], { home, stdin: JSON.stringify(document) })
    expect(code).toBe(0)
  }
}

let home = ''
beforeAll(async () => {
  home = temporaryFolder()
  await addTo(home)
})

/** A service that has the models, and a home to which they were added. */
async function createModelService(options: Parameters<typeof createCliService>[0] = {}) {
  const service = await createCliService({ models: DOCUMENTS.map((document) => ({ document })), ...options })
  await addTo(service.home)
  const { RUSHES_IMAGE_MODEL, RUSHES_VIDEO_MODEL } = ENV
  const run: typeof service.run = (argv, runOptions) =>
    service.run(argv, { ...runOptions, env: { RUSHES_IMAGE_MODEL, RUSHES_VIDEO_MODEL } })
  return { ...service, run }
}

const GIVEN = { seed: 7, guidance: 0.75, transparent: true, steps: 8, avoid: '2024' }
const FLAGS = ['--seed', '7', '--guidance', '0.75', '--transparent', '--steps', '8', '--avoid', '2024']
const IMAGE = ['run', 'image', 'a fox', '--dry-run']

const inputOf = async (words: readonly string[]) => {
  const { code, stdout, stderr } = await runCli([...words, '-q'], { env: ENV, home })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout).input
}

const errorOf = async (words: readonly string[]) => {
  const { code, stdout, stderr } = await runCli(words, { env: ENV, home })
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  return stderr.split('\n')[0]
}

describe('a text', () => {
  it.each<[ParameterSchema['type'], string, unknown]>([
    ['integer', '0', 0],
    ['integer', '-1', -1],
    ['integer', '1.5', '1.5'],
    ['integer', '', ''],
    ['integer', '7 ', '7 '],
    ['integer', '0x7', '0x7'],
    ['integer', '9007199254740993', 9007199254740993n],
    ['integer', '18446744073709551615', 18446744073709551615n],
    ['number', '-9223372036854775808', -9223372036854775808n],
    ['integer', '18446744073709551616', '18446744073709551616'],
    ['integer', '36893488147419103233', '36893488147419103233'],
    ['integer', '9007199254740992', 9007199254740992n],
    ['number', '0.10000000000000001', 0.1],
    ['number', '5e2', 500],
    ['number', '1', 1],
    ['number', '1e999', '1e999'],
    ['number', '.5', '.5'],
    ['boolean', 'TRUE', true],
    ['boolean', 'maybe', 'maybe'],
    ['string', '7', '7'],
  ])('as %s: "%s" is %s', (type, text, value) => {
    expect(valueOfText({ type, description: '' } as ParameterSchema, text)).toBe(value)
  })
})

describe('a flag', () => {
  it('becomes a value of its type', async () => {
    expect(await inputOf([...IMAGE, ...FLAGS])).toEqual({ prompt: 'a fox', ...GIVEN })
  })

  it.each([
    [['--seed=4294967295'], { seed: 4294967295 }],
    [['--no-transparent'], { transparent: false }],
    [['--transparent', '--no-transparent'], { transparent: false }],
    [[], {}],
  ])('%j → %j', async (flags, given) => {
    expect(await inputOf([...IMAGE, ...flags])).toEqual({ prompt: 'a fox', ...given })
  })

  it('sends a text for the kind whose schema has a text', async () => {
    expect(await inputOf(['run', 'video', 'a fox', '--dry-run', '--seed', '7'])).toEqual({
      prompt: 'a fox',
      seed: '7',
    })
  })

  it.each([
    [['--seed', 'x'], '--seed must be a whole number from 0 to 4294967295, not "x".'],
    [['--seed', '-1'], '--seed must be a whole number from 0 to 4294967295, not -1.'],
    [
      ['--seed', '36893488147419103233'],
      '--seed must be a whole number from 0 to 4294967295, not "36893488147419103233".',
    ],
    [['--steps', '9'], '--steps must be one of 4, 8, not 9.'],
  ])('%j is refused: %s', async (flags, message) => {
    expect(await errorOf([...IMAGE, ...flags])).toBe(`error: ${message}`)
  })

  it('without a value, or with one where it takes none, is a usage error', async () => {
    expect(await errorOf([...IMAGE, '--seed'])).toMatch(/the value is missing/)
    expect(await errorOf([...IMAGE, '--transparent=yes'])).toMatch(/--transparent takes no value/)
  })
})

describe('--input', () => {
  const input = (value: object) => ['--input', JSON.stringify(value)]

  it('goes unchanged into the body, and flags win over it', async () => {
    expect(await inputOf([...IMAGE, ...input(GIVEN)])).toEqual({ prompt: 'a fox', ...GIVEN })
    expect(
      await inputOf([...IMAGE, ...input(GIVEN), '--no-transparent', '--seed', '1', '--guidance', '2']),
    ).toEqual({ prompt: 'a fox', ...GIVEN, transparent: false, seed: 1, guidance: 2 })
  })

  it.each([
    [{ seed: '7' }, '--seed must be a whole number from 0 to 4294967295, not "7".'],
    [{ transparent: 'yes' }, '--transparent must be true or false, not "yes".'],
    [{ steps: '4' }, '--steps must be one of the numbers 4, 8, not "4" (did you mean 4?).'],
  ])('%j is refused: %s', async (value, message) => {
    expect(await errorOf([...IMAGE, ...input(value)])).toBe(`error: ${message}`)
  })

  it('of a named model that is one of the two is checked as well', async () => {
    const words = ['run', 'model', ENV.RUSHES_IMAGE_MODEL, ...input({ prompt: 'a fox', seed: 'x' })]
    expect(await errorOf([...words, '--dry-run'])).toContain('input.seed must be a whole number')
  })
})

describe('a manifest', () => {
  const NAMES = ['name', 'kind', 'prompt', ...Object.keys(GIVEN)]
  const row = { name: 'fox', kind: 'image', prompt: 'a fox', ...GIVEN }
  const csv = (...rows: readonly (readonly unknown[])[]) =>
    [NAMES, ...rows].map((cells) => cells.join(',')).join('\n')

  /** The bodies that a batch sends, by the names of its rows. */
  async function sentBy(file: string, text: string) {
    const service = await createModelService()
    const folder = temporaryFolder()
    writeFileSync(join(folder, file), text)
    const { code, stderr } = await service.run(['batch', join(folder, file), '-q'], {
      fetch: service.counting,
    })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return service.requests
      .filter(({ method }) => method === 'POST')
      .map(({ body }) => JSON.parse(Buffer.from(body ?? '').toString()).input)
  }

  it.each([
    [
      'a.yaml',
      `- {name: fox, kind: image, prompt: a fox, seed: 7, guidance: 0.75, transparent: true, steps: 8, avoid: 2024}`,
    ],
    ['a.json', JSON.stringify([row])],
    ['a.jsonl', JSON.stringify(row)],
    ['a.csv', csv(Object.values(row))],
    ['a.csv', csv(['fox', 'image', 'a fox', '7', '0.75', 'TRUE', '8', '2024'])],
  ])("%s sends values of the schema's types: %s", async (file, text) => {
    expect(await sentBy(file, text)).toEqual([{ prompt: 'a fox', ...GIVEN }])
  })

  it('converts a cell by the kind of its row', async () => {
    const text = csv(
      ['a', 'video', 'a fox', '007', '', '', '', ''],
      ['b', 'image', 'a fox', '007', '', 'false', '', ''],
    )
    expect(await sentBy('a.csv', text)).toEqual([
      { prompt: 'a fox', seed: '007' },
      { prompt: 'a fox', seed: 7, transparent: false },
    ])
  })

  it.each([
    [
      'a.yaml',
      '- {name: fox, kind: image, prompt: a fox, seed: x}',
      'a.yaml:1: seed of acme/image must be a whole number from 0 to 4294967295, not "x"',
    ],
    [
      'a.jsonl',
      `\n${JSON.stringify({ ...row, transparent: 1 })}`,
      'a.jsonl:2: transparent of acme/image must be true or false, not 1',
    ],
    [
      'a.csv',
      csv(['fox', 'image', 'a fox', '36893488147419103233', '1', 'true', '4', '']),
      'a.csv:2: seed of acme/image must be a whole number from 0 to 4294967295, not "36893488147419103233"',
    ],
  ])('%s names the place of what is wrong', async (file, text, message) => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, file), text)
    const { code, stderr } = await runCli(['batch', join(folder, file), '--check'], { env: ENV, home })
    expect(code).toBe(2)
    expect(stderr.replaceAll(`${folder}/`, '')).toContain(`\n  ${message}\n`)
  })

  it('fits the published schema, which does not know the model', () => {
    expect(misfits('manifest', [{ ...row, model: 'acme/image' }])).toEqual([])
    // Without a model, a name may be mistyped.
    expect(misfits('manifest', [row])).not.toEqual([])
  })
})

describe('the local service', () => {
  it('takes it, shows it in the run, and gives it to the engine', async () => {
    const engine = createInstantEngine()
    const service = await createModelService({ engine })
    const { code, stdout } = await service.run(['run', 'image', 'a fox', ...FLAGS, '--json'])
    expect(code).toBe(0)
    expect(engine.jobs.map(({ input }) => input)).toEqual([expect.objectContaining(GIVEN)])
    expect(JSON.parse(stdout).service.input).toEqual({ prompt: 'a fox', ...GIVEN })
  })
})

describe('TypeScript', () => {
  it('knows its type', () => {
    type Made = InputOf<{
      type: 'object'
      title: ''
      description: ''
      required: ['seed']
      properties: typeof ADDED
    }>
    const made: Made = { seed: 7, guidance: 0.5, transparent: false, steps: 4, avoid: '' }
    // @ts-expect-error A value that the schema does not list.
    const wrong: Made = { seed: 7, steps: 5 }
    // @ts-expect-error Another type.
    const text: Made = { seed: '7' }
    expect([made, wrong, text]).toHaveLength(3)
  })
})

describe('an integer of 64 bits', () => {
  const WIDE = documentOf('image', {
    seed: { type: 'integer', description: '', minimum: 0, maximum: 18446744073709551615n },
  })
  const SEED = '18446744073709551613'

  it.each<[string, readonly string[]]>([
    ['a flag', ['--seed', SEED]],
    ['--input', ['--input', `{"seed": ${SEED}}`]],
  ])('keeps its digits from %s to the service and back', async (_, words) => {
    const service = await createCliService({ models: [{ document: WIDE }] })
    const added = await runCli(['models', 'add', '-'], { home: service.home, stdin: writeJson(WIDE) })
    expect(added.code).toBe(0)
    const run = (...more: readonly string[]) =>
      service.run(['run', 'image', 'a fox', '--model', 'acme/image', ...more])
    const { code, stdout } = await run(...words, '--json')
    expect(code).toBe(0)
    // The request, and the run of the service's status.
    expect(
      Buffer.from(service.requests.find(({ method }) => method === 'POST')?.body ?? '').toString(),
    ).toContain(`"seed":${SEED}`)
    expect(stdout).toContain(`"seed":${SEED}`)
    expect((await service.run(['show', '--last'])).stdout).toContain(`seed\t${SEED}\n`)
    const beyond = await run('--seed', '18446744073709551616')
    expect(beyond).toMatchObject({ code: 2, stdout: '' })
    expect((await run('--seed=-1')).stderr).toContain(
      '--seed must be a whole number from 0 to 18446744073709551615, not -1.',
    )
    const models = await service.run(['models', 'acme/image'])
    expect(models.stdout).toContain('18446744073709551615')
    const page = await service.run(['models', 'acme/image', '--json'])
    expect(page.stdout).toContain('"maximum":18446744073709551615')
  })
})
