/** When a command asks for the service's list of models before a create, and what it does with damaged or old documents. */
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { defaultsIn } from '../../src/cli/commands/login.js'
import { flagsOf } from '../../src/cli/flags/model-flags.js'
import { createProgram } from '../../src/cli/program.js'
import type { Fetch } from '../../src/host/http.js'
import { MODELS_PATH } from '../../src/protocol/id.js'
import {
  type CommandLine,
  createCliService,
  createManualClock,
  type RunOptions,
  runCli,
  SET,
  scripted,
  scriptedList,
  temporaryFolder,
} from '../support/index.js'
import { openMcp } from '../support/mcp.js'
import { PARSE_ONLY } from '../support/project.js'

const STILL = {
  name: 'acme/still-2',
  kind: 'image',
  input: { steps: { type: 'integer', minimum: 1, maximum: 50 } },
  price: { run: 1 },
}
const DAY_MS = 86_400_000
const BROKEN = { name: 'acme/broken', kind: 'image', input: 7 }

interface Answer {
  readonly status: number
  readonly body?: unknown
}

/** A home, and a service whose list can change. */
function openHome(models: readonly unknown[] = [STILL, BROKEN]) {
  const home = temporaryFolder()
  const clock = createManualClock()
  let asked = 0
  const created = scripted({ status: 201, body: { id: 'run_1' } })
  const list = { answer: { status: 200, body: { models } } as Answer }
  const fetch: Fetch = async (request) => {
    if (!request.url.pathname.endsWith(MODELS_PATH)) return created.fetch(request)
    asked++
    return scriptedList(list.answer).fetch(request)
  }
  return {
    home,
    clock,
    list,
    asked: () => asked,
    inputs: () =>
      created.requests.map(({ body }) => JSON.parse(Buffer.from(body ?? '').toString()).input as object),
    run: (line: CommandLine, options: RunOptions = {}) =>
      runCli(line, { home, clock, fetch, env: SET, ...options }),
  }
}

const imageWith = (input: object, ...flags: readonly string[]) => [
  ...['run', 'image', 'a fox', '--no-wait', '--input', JSON.stringify(input)],
  ...flags,
]

it('a create of an agent is checked with the document of the service', async () => {
  const [tool, args] = [
    'create_model_run',
    { model: 'acme/plain', input: { prompt: 'x', steps: 99 } },
  ] as const
  const service = await createCliService()
  const plain = {
    name: 'acme/plain',
    kind: 'image',
    input: { steps: { type: 'integer', maximum: 50 } },
  }
  const list = scriptedList({ status: 200, body: { models: [plain] } })
  const fetch: Fetch = (request) =>
    request.url.pathname.endsWith(MODELS_PATH) ? list.fetch(request) : service.counting(request)
  const mcp = await openMcp(service, { fetch, env: { RUSHES_IMAGE_MODEL: 'acme/plain' } })
  await mcp.call('list_models')
  for (const dry_run of [true, false]) {
    const { structured } = await mcp.call(tool, { ...args, dry_run })
    expect(structured.error.message).toMatch(/steps must be a whole number up to 50, not 99/)
  }
  expect({ asked: list.requests.length, sent: service.requests.length }).toEqual({ asked: 1, sent: 0 })
})

it('a create sends the input of a model with an invalid document unchanged', async () => {
  const { run, inputs } = openHome()
  const input = { quality: 'ultra', aspect_ratio: 7 }
  const { code, stderr } = await run(imageWith(input, '--model', 'acme/broken'))
  expect(code).toBe(0)
  expect(stderr.match(/warning/g)).toHaveLength(1)
  const env = { ...SET, RUSHES_IMAGE_MODEL: 'acme/broken' }
  const line = ['run', 'model', 'acme/broken', '--no-wait', '--input', JSON.stringify(input)]
  expect(await run(line, { env })).toMatchObject({ code: 0, stderr: '' })
  expect(inputs()).toEqual([{ prompt: 'a fox', ...input }, input])
})

it('a create under --max-cost is checked with the price that the service has now', async () => {
  const { run, list, asked, inputs } = openHome()
  const line = imageWith({}, '--model', 'acme/still-2', '--max-cost', '5')
  expect((await run(line)).code).toBe(0)
  list.answer = { status: 200, body: { models: [{ ...STILL, price: { run: 9 } }] } }
  expect(await run(line)).toMatchObject({ code: 2, stderr: expect.stringContaining('The estimate is 9') })
  list.answer = { status: 200, body: { models: [{ ...STILL, price: { run: 4 } }] } }
  expect((await run([...line, '--json'])).code).toBe(0)
  expect((await run(line)).code).toBe(0)
  expect((await run('spend')).stdout).toMatch(/\t9\t/)
  expect({ asked: asked(), created: inputs().length }).toEqual({ asked: 4, created: 3 })
})

it('a create under --max-cost needs prices of the last day', async () => {
  const { run, clock, list, inputs } = openHome()
  const line = imageWith({}, '--model', 'acme/still-2', '--max-cost', '5')
  expect((await run(line)).code).toBe(0)
  list.answer = { status: 500 }
  clock.jump(DAY_MS)
  const { code, stderr } = await run(line)
  expect(code).toBe(2)
  expect(stderr).toContain("error: The prices in the service's list of models could not be read")
  const manifest = join(temporaryFolder(), 'm.yaml')
  writeFileSync(manifest, '- {name: a, model: acme/still-2, prompt: x}')
  expect((await run(`batch ${manifest} --max-cost 5`)).stderr).toContain('could not be read')
  expect((await run([...line, '--dry-run'])).code).toBe(2)
  expect((await run(imageWith({}, '--model', 'acme/still-2'))).code).toBe(0)
  expect(inputs()).toHaveLength(2)
  // A fresh folder has no list: the price may only be unread.
  const fresh = openHome()
  fresh.list.answer = { status: 500 }
  const unread = await fresh.run(line)
  expect([unread.code, unread.stderr]).toEqual([2, expect.stringContaining('could not be read')])
  expect(fresh.inputs()).toEqual([])
})

it('a kept list is removed when the service has none any more, and stays after a failure', async () => {
  const { run, list, home } = openHome()
  const kept = () => readdirSync(join(home, 'state', 'models'))
  await run('models --refresh')
  list.answer = { status: 500 }
  expect((await run('models --refresh')).code).toBe(8)
  expect(kept()).toEqual(['http%3a%2f%2f127%2e0%2e0%2e1%3a1.json'])
  list.answer = { status: 404 }
  expect((await run('models --refresh')).code).toBe(0)
  expect(kept()).toEqual([])
})

it('an added model whose file is damaged is one warning, and is not replaced by that of the service', async () => {
  const { run, home, inputs } = openHome()
  await run('models --refresh')
  await run('models add -', {
    stdin: JSON.stringify({ ...STILL, input: { seed: { type: 'integer' } } }),
  })
  const folder = join(home, 'config', 'models')
  const [name = ''] = readdirSync(folder)
  writeFileSync(join(folder, name), '{"name":')
  const { code, stderr } = await run(imageWith({ steps: 99 }, '--model', 'acme/still-2'))
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr:
      'warning: The added model file of acme/still-2 is damaged, so its parameters are not checked. Add the model again.\n',
  })
  expect(inputs()).toEqual([{ prompt: 'a fox', steps: 99 }])
  expect((await run('models')).stdout).not.toContain('acme/still-2')
})

it('the help of a model that is not known says so', async () => {
  const { run } = openHome()
  expect((await run('run image --model acme/x --help')).stdout).toMatch(
    /acme\/x: its parameters are not known here\. These are the built-in ones of image\s+models\.\n/,
  )
  expect((await run('run image --help')).stdout).not.toContain('not known')
})

it('a parameter with the name of another flag of `run` has no flag', async () => {
  const program = await createProgram('run', PARSE_ONLY)
  const run = program.commands.find((each) => each.name() === 'run')
  const names = [program, ...(run?.commands ?? [])].flatMap(({ options }) =>
    options
      .filter(({ long }) => long !== '--prompt')
      .map((option) => option.attributeName().replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)),
  )
  const parameter = { type: 'string', description: '' } as const
  const properties = Object.fromEntries(names.map((name) => [name, parameter]))
  const schema = { type: 'object', title: '', description: '', required: [], properties } as const
  expect([...flagsOf(schema).keys()]).toEqual([])
})

const still = { name: 'a/still', kind: 'image' }
const broken = { name: 'a/broken', kind: 'image', input: 7 }
const video = { name: 'a/film', kind: 'video' }
it.each<[string, readonly unknown[], object]>([
  ['the only model', [still, video], { image: 'a/still', video: 'a/film' }],
  ['the default', [still, { ...still, name: 'a/b', default: true }], { image: 'a/b' }],
  ['none of several', [still, { ...still, name: 'a/b' }, video], { video: 'a/film' }],
  ['none beside an invalid one', [still, broken, video], { video: 'a/film' }],
  ['the only one beside an entry without a kind', [still, null], { image: 'a/still' }],
  ['none whose name is not safe to print', [{ ...still, name: 'a/\u202estill' }], {}],
])('login sets %s', (_, listed, models) => {
  expect(defaultsIn(listed)).toEqual(models)
})
