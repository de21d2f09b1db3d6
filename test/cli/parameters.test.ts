import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { writeJson } from '../../src/protocol/json.js'
import {
  builtInSchema,
  type ModelDocument,
  type ParameterSchema,
  valueOfText,
} from '../../src/protocol/models.js'
import {
  type CommandLine,
  createCliService,
  createHome,
  type Home,
  lines,
  outputOf,
  SET,
  usageErrorOf,
  wordsOf,
} from '../support/index.js'

const ADDED = {
  seed: { type: 'integer', description: 'where chance begins', minimum: 0, maximum: 4294967295 },
  guidance: { type: 'number', description: 'how closely to follow', minimum: 0.5 },
  transparent: { type: 'boolean', description: 'without a background' },
  steps: { type: 'integer', description: 'how many steps', enum: [4, 8] },
  strength: { type: 'number', description: 'how much to change', maximum: 1 },
  avoid: { type: 'string', description: 'what not to show' },
} as const

function documentOf(added: Readonly<Record<string, ParameterSchema>>): ModelDocument {
  const schema = builtInSchema('image')
  const input = { ...schema, properties: { ...schema.properties, ...added } }
  return { name: 'acme/image', kind: 'image', input }
}

let home: Home
beforeAll(() => {
  home = createHome({ models: [documentOf(ADDED)], env: { ...SET, RUSHES_IMAGE_MODEL: 'acme/image' } })
})

const GIVEN = { seed: 7, guidance: 0.75, transparent: true, steps: 8, avoid: '2024' }
const FLAGS = ['--seed', '7', '--guidance', '0.75', '--transparent', '--steps', '8', '--avoid', '2024']
const IMAGE = ['run', 'image', 'a fox', '--dry-run']

const inputOf = async (line: CommandLine) => {
  const { code, stdout, stderr } = await home.run([...wordsOf(line), '-q'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout).input
}

const errorOf = async (line: CommandLine) => lines(usageErrorOf(await home.run(line)))[0]

it.each<[ParameterSchema['type'], string, unknown]>([
  ['integer', '0', 0],
  ['integer', '1.5', '1.5'],
  ['integer', '', ''],
  ['integer', '0x7', '0x7'],
  ['integer', '18446744073709551615', 18446744073709551615n],
  ['number', '-9223372036854775808', -9223372036854775808n],
  ['integer', '18446744073709551616', '18446744073709551616'],
  ['integer', '9007199254740992', 9007199254740992n],
  ['number', '0.10000000000000001', 0.1],
  ['number', '1e999', '1e999'],
  ['boolean', 'TRUE', true],
  ['boolean', 'maybe', 'maybe'],
  ['string', '7', '7'],
])('a flag of the type %s reads "%s" as %s', (type, text, value) => {
  expect(valueOfText({ type, description: '' } as ParameterSchema, text)).toBe(value)
})

it.each<[readonly string[], object]>([
  [FLAGS, GIVEN],
  [['--seed=4294967295'], { seed: 4294967295 }],
  [['--no-transparent'], { transparent: false }],
  [['--transparent', '--no-transparent'], { transparent: false }],
])('the flags %j send %j', async (flags, given) => {
  expect(await inputOf([...IMAGE, ...flags])).toEqual({ prompt: 'a fox', ...given })
})

it.each([
  [['--seed', 'x'], '--seed must be a whole number from 0 to 4294967295, not "x".'],
  [['--input', '{"steps":"4"}'], '--steps must be one of the numbers 4, 8, not "4" (did you mean 4?).'],
])('the flags %j are refused: %s', async (flags, message) => {
  expect(await errorOf([...IMAGE, ...flags])).toBe(`error: ${message}`)
})

it('a flag without a value, or with one where it takes none, is a usage error', async () => {
  expect(await errorOf([...IMAGE, '--seed'])).toMatch(/the value is missing/)
  expect(await errorOf([...IMAGE, '--transparent=yes'])).toMatch(/--transparent takes no value/)
})

const input = (value: object) => ['--input', JSON.stringify(value)]

it('--input is sent unchanged, and flags go before it', async () => {
  expect(await inputOf([...IMAGE, ...input(GIVEN)])).toEqual({ prompt: 'a fox', ...GIVEN })
  expect(
    await inputOf([...IMAGE, ...input(GIVEN), '--no-transparent', '--seed', '1', '--guidance', '2']),
  ).toEqual({ prompt: 'a fox', ...GIVEN, transparent: false, seed: 1, guidance: 2 })
})

const WIDE = documentOf({
  seed: { type: 'integer', description: '', minimum: 0, maximum: 18446744073709551615n },
})
const SEED = '18446744073709551613'

it('an integer of 64 bits keeps its digits from a flag or --input to the service, the journal and the documents', async () => {
  const service = await createCliService({ models: [{ document: WIDE }] })
  const path = join(service.home, 'wide.json')
  writeFileSync(path, writeJson(WIDE))
  outputOf(await service.run(`models add ${path}`))
  const run = (...more: readonly string[]) =>
    service.run(['run', 'image', 'a fox', '--model', 'acme/image', ...more])
  for (const words of [
    ['--seed', SEED],
    ['--input', `{"seed": ${SEED}}`],
  ]) {
    service.requests.length = 0
    // The run of the service's status, and the request.
    expect(outputOf(await run(...words, '--json'))).toContain(`"seed":${SEED}`)
    expect(Buffer.from(service.requests[0]?.body ?? []).toString()).toContain(`"seed":${SEED}`)
    expect(outputOf(await service.run('show --last'))).toContain(`seed\t${SEED}\n`)
  }
  expect(usageErrorOf(await run('--seed', '18446744073709551616'))).toContain('--seed must be')
  expect(usageErrorOf(await run('--seed=-1'))).toContain('from 0 to 18446744073709551615, not -1.')
  expect(outputOf(await service.run('models acme/image'))).toContain('18446744073709551615')
  expect(outputOf(await service.run('models acme/image --json'))).toContain('"maximum":18446744073709551615')
})
