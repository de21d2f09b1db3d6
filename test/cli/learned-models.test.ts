/** When a command asks for the service's list of models before a create, and what it does with damaged or old documents. */
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { defaultsIn } from '../../src/cli/commands/login.js'
import { flagsOf } from '../../src/cli/flags/model-flags.js'
import { createProgram } from '../../src/cli/program.js'
import { addedModelPath } from '../../src/cli/settings/folders.js'
import { createListedHome, createManualClock, usageErrorOf } from '../support/index.js'
import { PARSE_ONLY } from '../support/project.js'

const STILL = {
  name: 'acme/still-2',
  kind: 'image',
  input: { steps: { type: 'integer', minimum: 1, maximum: 50 } },
  price: { run: 1 },
}

const BROKEN = { name: 'acme/broken', kind: 'image', input: 7 }

const open = () => createListedHome([STILL, BROKEN])

it('a create sends the input of a model with an invalid document unchanged, with one warning', async () => {
  const { run, creates } = open()
  const input = { quality: 'ultra', aspect_ratio: 7 }
  const flags = `--no-wait --input '${JSON.stringify(input)}'`
  expect(await run(`run image "a fox" --model acme/broken ${flags}`)).toMatchObject({
    code: 0,
    stderr:
      "warning: The service's list has 1 invalid model: acme/broken (input must be a map). " +
      'Use these models with --input; their parameters are not checked.\n',
  })
  expect(await run(`run model acme/broken ${flags}`)).toMatchObject({ code: 0, stderr: '' })
  expect(creates().map((each) => each.input)).toEqual([{ prompt: 'a fox', ...input }, input])
})

const STILL_LINE = 'run image "a fox" --no-wait --model acme/still-2'
const LIMITED = `${STILL_LINE} --max-cost 5`

it('a create under --max-cost is checked with the price that the service has now', async () => {
  const { run, list, creates } = open()
  expect((await run(LIMITED)).code).toBe(0)
  list.answer = { status: 200, body: { models: [{ ...STILL, price: { run: 9 } }] } }
  expect(usageErrorOf(await run(LIMITED))).toContain('The estimate is 9')
  list.answer = { status: 200, body: { models: [{ ...STILL, price: { run: 4 } }] } }
  expect((await run(LIMITED)).code).toBe(0)
  expect((await run('spend')).stdout).toMatch(/\t5\t/)
  expect({ asked: list.asked, created: creates().length }).toEqual({ asked: 3, created: 2 })
})

it('a create under --max-cost needs prices of the last day', async () => {
  const clock = createManualClock()
  const { home, run, list, creates } = createListedHome([STILL], { clock })
  expect((await run(LIMITED)).code).toBe(0)
  list.answer = { status: 500 }
  clock.jump(86_400_000)
  const manifest = join(home, 'm.yaml')
  writeFileSync(manifest, '- {name: a, model: acme/still-2, prompt: x}')
  for (const line of [LIMITED, `${LIMITED} --dry-run`, `batch ${manifest} --max-cost 5`])
    expect((await run(line)).stderr).toContain(
      "error: The prices in the service's list of models could not be read",
    )
  expect((await run(STILL_LINE)).code).toBe(0)
  expect(creates()).toHaveLength(2)
})

it('a create under --max-cost needs a list that was read, because the model may have a price in it', async () => {
  const { run, list, creates } = open()
  list.answer = { status: 500 }
  expect(usageErrorOf(await run(LIMITED))).toContain('could not be read')
  expect(creates()).toEqual([])
})

it('a kept list is removed when the service has none any more, and stays after a failure', async () => {
  const { run, list, home } = open()
  const kept = () => readdirSync(join(home, 'state', 'models'))
  await run('models --refresh')
  list.answer = { status: 500 }
  expect((await run('models --refresh')).code).toBe(8)
  expect(kept()).toEqual(['http%3a%2f%2f127%2e0%2e0%2e1%3a1.json'])
  list.answer = { status: 404 }
  expect((await run('models --refresh')).code).toBe(0)
  expect(kept()).toEqual([])
})

it('an added model whose file is damaged is not checked, with one warning, and the model of the service does not replace it', async () => {
  const { run, home, creates } = open()
  await run('models --refresh')
  await run('models add -', { stdin: JSON.stringify(STILL) })
  writeFileSync(addedModelPath(join(home, 'config'), STILL.name), '{"name":')
  expect(await run(`${STILL_LINE} --input '{"steps":99}'`)).toMatchObject({
    code: 0,
    stderr:
      'warning: The added model file of acme/still-2 is damaged, so its parameters are not checked. Add the model again.\n',
  })
  expect(creates()).toMatchObject([{ input: { prompt: 'a fox', steps: 99 } }])
  expect((await run('models')).stdout).not.toContain('acme/still-2')
})

it('the help of a model that is not known says so, and no help requests the list of a service', async () => {
  const { run, list } = open()
  expect((await run('run image --model acme/x --help')).stdout).toMatch(
    /acme\/x: its parameters are not known here\. These are the built-in ones of image\s+models\.\n/,
  )
  expect((await run('run image --help')).stdout).not.toContain('not known')
  for (const line of ['help run image', 'run --help', 'models --help']) await run(line)
  expect(list.asked).toBe(0)
})

it('a parameter with the name of a flag of `run` gets no flag', async () => {
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
  ['the only model of a kind', [still, video], { image: 'a/still', video: 'a/film' }],
  ['the default model of a kind', [still, { ...still, name: 'a/b', default: true }], { image: 'a/b' }],
  ['no image model where there are several', [still, { ...still, name: 'a/b' }, video], { video: 'a/film' }],
  ['no image model beside an invalid one', [still, broken, video], { video: 'a/film' }],
  ['the only model beside an entry without a kind', [still, null], { image: 'a/still' }],
  ['no model whose name is not safe to print', [{ ...still, name: 'a/\u202estill' }], {}],
])('login sets %s', (_, listed, models) => {
  expect(defaultsIn(listed)).toEqual(models)
})
