/** Models as documents: where they come from, when the list of a service is requested, how they are kept, and the flags that follow from them. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { defaultsIn } from '../../src/cli/commands/login.js'
import { flagsOf } from '../../src/cli/flags/model-flags.js'
import { checkList, findKept } from '../../src/cli/models/known-models.js'
import { createProgram } from '../../src/cli/program.js'
import { addedModelPath } from '../../src/cli/settings/folders.js'
import { HttpFailure } from '../../src/host/http.js'
import { PREVIEW_DOCUMENTS, type ServedModel } from '../../src/service/models/served-model.js'
import {
  type CliService,
  type CommandLine,
  createCliService,
  createHome,
  createListedHome,
  createManualClock,
  type HomeOptions,
  lines,
  outputOf,
  type RunOptions,
  type Scripted,
  SET,
  scripted,
  scriptedList,
  temporaryFolder,
  until,
  usageErrorOf,
} from '../support/index.js'
import { PARSE_ONLY } from '../support/project.js'

const STILL = {
  name: 'acme/still-2',
  kind: 'image',
  input: {
    type: 'object',
    description: 'A small model',
    required: ['prompt'],
    properties: {
      prompt: { type: 'string', description: 'Text' },
      steps: { type: 'integer', minimum: 1, maximum: 50, default: 20, description: 'denoising steps' },
      loras: { type: 'array', items: { type: 'string' }, maxItems: 2, description: 'adapters' },
      styles: { type: 'array', items: { type: 'string', enum: ['ink', 'oil'] }, description: 'looks' },

      sampler: { type: 'string', enum: ['euler', 'heun'], description: 'method' },
      guidance: { type: 'number', minimum: 0.5, description: 'how closely to follow' },
      transparent: { type: 'boolean', description: 'without a background' },
      output: { type: 'string', description: 'collides' },
      region: { type: 'object', description: 'a part' },
      no_logo: { type: 'boolean', description: 'without a logo' },
      seed_: { type: 'integer', description: 'ends with a dash as a flag' },
      size: { type: 'string', enum: ['a', 'b'] },
      to_string: { type: 'array', items: { type: 'string' }, description: 'inherited' },
    },
  },
  price: { run: 1, factors: { sampler: { heun: 2 } } },
}
const CINEMA = { name: 'acme/cinema-2', kind: 'video' }
const MUTE = { name: 'acme/mute', kind: 'image', input: { prompt: false } }

it('a kept list of models gives each document by its name', () => {
  const { warning, models } = checkList([CINEMA, STILL, { ...CINEMA, name: 'a/"b\\' }])
  expect(warning).toBeUndefined()
  for (const name of ['acme/cinema-2', 'acme/still-2', 'a/"b\\'])
    expect(findKept(models, name)).toMatchObject({ name })
  for (const name of ['acme/still', 'still-2', '__proto__', 'toString'])
    expect(findKept(models, name)).toBeUndefined()
  expect(findKept({ 'a/b': '{"name":' }, 'a/b')).toBeUndefined()
})

it('a kept list of models leaves out what is not valid, and names it in one sentence', () => {
  const hostile = [
    null,
    'x',
    { name: '__proto__/x', kind: 'image', input: { __proto__x: { type: 'string' }, constructor: {} } },
    { name: 'acme/\u001b[31mred\u202e', kind: 'image' },
    JSON.parse('{"name":"acme/proto","kind":"image","input":{"__proto__":{"type":"string"}}}'),
    { name: 'acme/sound', kind: 'audio' },
    STILL,
  ]
  const { models, warning } = checkList([...hostile, STILL])
  expect(findKept(models, 'acme/still-2')).toMatchObject({ name: 'acme/still-2' })
  expect(findKept(models, 'acme/sound')).toBe('invalid')
  expect(warning).toMatch(/^The service's list has 6 invalid models: number 1 \(/)
  expect(warning).not.toMatch(/[\u0000-\u001f\u202e]/)
  expect(({} as { type?: unknown }).type).toBeUndefined()
})

it.each([
  ['run image --model a/b fox', 'a/b', 'fox'],
  ['--profile default run image fox --model a/b', 'a/b', 'fox'],
  ['run image fox --model c/d --model a/b', 'a/b', 'fox'],
  ['run image --prompt --model', 'acme/still-1', '--model'],
  ['run image -- --model a/b', 'acme/still-1', '--model a/b'],
  ['run model a/b --input {"prompt":"fox"}', 'a/b', 'fox'],
])('the line `%s` is of the model %s', async (line, model, prompt) => {
  const words = line.replace(/run (image|model)/, '$& --dry-run').split(' ')
  const { code, stdout } = await createHome({ answers: [] }).run(words)
  expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 0, model, input: { prompt } })
})

const LINE = 'run image "a fox" --model acme/still-2 --no-wait'

it('the list of a service is requested once for an unknown model, and gives it flags', async () => {
  const { run, home, list, creates } = createListedHome([STILL])
  const flags = `--steps 30 --loras a --loras - --to-string x --input '{"region":{"x":1}}'`
  for (let count = 0; count < 2; count++)
    expect(await run(`${LINE} ${flags}`)).toMatchObject({ code: 0, stderr: '' })
  expect(list.asked).toBe(1)
  expect(creates()[1]).toEqual({
    model: 'acme/still-2',
    input: { prompt: 'a fox', region: { x: 1 }, steps: 30, loras: ['a', '-'], to_string: ['x'] },
  })
  const [file = ''] = readdirSync(join(home, 'state', 'models'))
  expect(statSync(join(home, 'state', 'models', file)).mode & 0o777).toBe(0o600)
  expect(readFileSync(join(home, 'state', 'models', file), 'utf8')).not.toContain(SET.RUSHES_API_KEY)
})

const SET_STILL = { ...SET, RUSHES_IMAGE_MODEL: 'acme/still-2' }
it('a run that the built-in flags allow does not request the list of a service, also with --dry-run', async () => {
  const { run, list, creates } = createListedHome([STILL], { env: SET_STILL })
  for (const flag of ['', '--dry-run'])
    outputOf(await run(`run image "a fox" --no-wait --quality high ${flag}`))
  expect({ asked: list.asked, created: creates().length }).toEqual({ asked: 0, created: 1 })
})

it.each([
  ['has an unknown flag', 'run image "a fox" --steps 3'],
  ['has no prompt', `run image --input '{"steps":3}'`],
  ['has a value that the built-in flag does not have', 'run image "a fox" --aspect-ratio 5:4'],
  ['is of another kind than the kept list says', 'run video "a fox" --model acme/cinema-2'],
])('the list of a service is requested once if a line %s', async (_, line) => {
  const { properties } = STILL.input
  const ratio = { type: 'string', enum: ['5:4'], description: '' }
  const input = { ...STILL.input, required: [], properties: { ...properties, aspect_ratio: ratio } }
  const { run, list, creates } = createListedHome([{ ...STILL, input }, CINEMA], { env: SET_STILL })
  if (line.includes('video'))
    await run('models', {
      fetch: scriptedList({ status: 200, body: { models: [{ ...CINEMA, kind: 'image' }] } }).fetch,
    })
  for (let again = 0; again < 2; again++) outputOf(await run(`${line} --no-wait`))
  expect({ asked: list.asked, created: creates().length }).toEqual({ asked: 1, created: 2 })
})

it('models prints the list that the service has now, or the kept one with a warning', async () => {
  const env = { ...SET, RUSHES_VIDEO_MODEL: 'acme/cinema-2' }
  const added = { ...STILL, price: { run: 0.5 } }
  const { run, list } = createListedHome([STILL, CINEMA], { models: [added], env })
  const rows = 'acme/still-2\timage\t0.5 credits\tadded\t\nacme/cinema-2\tvideo\t\tservice\tdefault\n'
  const refreshed = await run('models --refresh')
  expect(refreshed.stdout).toBe(`${rows}acme/still-1\timage\t\tbuilt-in\tdefault\n`)
  const now = { code: 0, stdout: expect.stringContaining(rows) }
  expect(await run('models')).toMatchObject({ ...now, stderr: '' })
  expect(list.asked).toBe(2)
  const { fetch } = scriptedList(new HttpFailure('getaddrinfo ENOTFOUND', { sent: false }))
  expect(await run('models', { fetch })).toMatchObject({
    ...now,
    stderr: 'warning: The service did not send its list of models and prices. This one is from 2026-01-01.\n',
  })
})

it.each<[string, Scripted, number, RegExp]>([
  ['404', { status: 404 }, 0, /The service has no list of models: it answered 404\./],
  ['a page', { status: 200, body: '<html>' }, 0, /its response is not a list of models/],
  ['9 MiB', { status: 200, body: 'x'.repeat(9 * 1_048_576) }, 0, /larger than 8388608 bytes/],
  ['401', { status: 401 }, 4, /error: The service answered 401/],
  ['500', { status: 500 }, 8, /error: The service answered 500/],
])('%s in place of the list is named by models --refresh alone', async (_, answer, code, message) => {
  const { run } = createHome({ fetch: scriptedList(answer).fetch })
  const ran = await run('models --refresh')
  expect(ran.stderr).toMatch(message)
  expect(ran.code).toBe(code)
  expect(await run('models')).toMatchObject({ code: 0, stderr: '' })
})

it('a key that cannot be read lets no list be requested, and its command runs once', async () => {
  const { run, home } = createHome()
  const env = { ...SET, RUSHES_API_KEY: '', RUSHES_API_KEY_COMMAND: `echo x >> "${home}/log"; exit 1` }
  expect((await run(LINE, { env })).code).toBe(4)
  expect(readFileSync(join(home, 'log'), 'utf8')).toBe('x\n')
})

it('a list that never arrives delays a usage error by two seconds', async () => {
  const { run } = createHome()
  const clock = createManualClock()
  const startedMs = clock.monotonic()
  const { fetch, requests } = scriptedList('hang')
  const ran = run(`${LINE} --steps 3 --dry-run`, { clock, fetch })
  await until('the request', () => requests.length === 1)
  await clock.advance(2_000)
  expect(usageErrorOf(await ran)).toContain('Unknown flag --steps.')
  expect([requests.length, clock.monotonic() - startedMs]).toEqual([1, 2_000])
})

const errorOf = async (line: CommandLine, ...models: NonNullable<HomeOptions['models']>) =>
  usageErrorOf(await createHome({ models }).run(line))
const STILL_LINE = ['run', 'image', 'a fox', '--dry-run', '--model', 'acme/still-2']

it('the help of a model has the flags and the text of its document', async () => {
  const { run } = createHome({ models: [STILL] })
  const wide: RunOptions = { tty: { stdout: true }, columns: 200 }
  const help = await run('run image --help --model acme/still-2', wide)
  expect(help.code).toBe(0)
  const shown = help.stdout.split('\n').map((line) => line.trim().replace(/ {2,}/g, '  '))
  expect(shown).toEqual(
    expect.arrayContaining([
      'acme/still-2: A small model',
      '--steps <n>  Denoising steps: a whole number from 1 to 50 (default: 20)',
      '--loras <text>  Adapters (repeatable, at most 2)',
      '--sampler <value>  Method: euler, heun',
      '--size <value>  One of: a, b',
      '--styles <text>  Looks (repeatable: ink, oil)',
      '--guidance <n>  How closely to follow: a number from 0.5',
      '--transparent  Without a background',
      '--no-transparent  Turn --transparent off',
    ]),
  )
  expect(help.stdout).not.toContain('--aspect-ratio')
  expect(outputOf(await run('run image --help', { ...wide, env: SET_STILL }))).toBe(help.stdout)
})

it.each<[readonly string[], RegExp]>([
  [
    ['--steps', '51'],
    /^error: --steps must be a whole number from 1 to 50, not 51\.\n {2}See all .*`rushes models acme\/still-2`/,
  ],
  [['--styles', 'ink', '--styles', 'x'], /--styles \(entry 2\) must be one of ink, oil, not "x"/],
  [['--input', '{"no_logo":1}'], /input\.no_logo must be true or false, not 1/],
  [
    ['--aspect-ratio', '1:1'],
    /Unknown flag --aspect-ratio\. acme\/still-2 does not have it\.\n {2}See `rushes models acme\/still-2`/,
  ],
  [['--step', '3'], /Did you mean --steps\?/],
])('a value that the document of a model does not allow is a usage error: %j', async (flags, message) =>
  expect(await errorOf([...STILL_LINE, ...flags], STILL)).toMatch(message),
)

it('an unknown flag of an unknown model is an error that says how to learn its parameters', async () => {
  expect(await errorOf([...STILL_LINE, '--guidance', '3'])).toMatch(
    /Unknown flag --guidance\. The parameters of acme\/still-2 are not known here\.\n.*rushes models --refresh/,
  )
})

it('a model of another kind is an error that names the command of its kind', async () => {
  expect(await errorOf('run image x --model acme/cinema-2', CINEMA)).toBe(
    'error: acme/cinema-2 is a model of kind video.\n  Use `rushes run video --model acme/cinema-2`.\n',
  )
  const { run } = createHome({ models: [CINEMA] })
  const env = { ...SET, RUSHES_IMAGE_MODEL: 'acme/cinema-2' }
  expect((await run('run image x --dry-run', { env })).stderr).toContain(
    'The image model is set to acme/cinema-2, which is a model of kind video.',
  )
  outputOf(await run('run image --help', { env }))
  const examined = await run('doctor --json', { env, fetch: scripted().fetch })
  expect(examined.stdout).toContain('which is a model of kind video')
})

it('a model without a prompt refuses one, and needs none', async () => {
  const line = ['run', 'image', '--model', 'acme/mute', '--dry-run']
  expect(await errorOf([...line, 'a fox'], MUTE)).toContain(
    'acme/mute takes no prompt, but the arguments contain one.',
  )
  const { run } = createHome({ models: [MUTE] })
  expect(JSON.parse(outputOf(await run([...line, '--quality', 'high']))).input).toEqual({ quality: 'high' })
})

it('run model checks --input with the document of the model', async () => {
  const line = ['run', 'model', 'acme/still-2', '--dry-run', '--input', '{"prompt":"x","steps":0,"output":7}']
  expect(await errorOf(line, STILL)).toMatch(
    /input\.steps must be .*, not 0\. input\.output must be text, not .*\./,
  )
})

it('an added model shows its parameters and its price, and can be removed', async () => {
  const { home, run } = createHome({ models: [STILL] })
  const { stdout } = await run('models acme/still-2')
  expect(stdout.split('\n')).toEqual(
    expect.arrayContaining([
      'acme/still-2\t--prompt\trequired\ttext\tText',
      'acme/still-2\t--steps\toptional\twhole number from 1 to 50\tdenoising steps (default: 20)',
      'acme/still-2\t--sampler\toptional\teuler heun\tmethod',
      'acme/still-2\t--size\toptional\ta b\t',
      'acme/still-2\t--guidance\toptional\tnumber from 0.5\thow closely to follow',
      'acme/still-2\t--transparent\toptional\ttrue or false\twithout a background',
      'acme/still-2\tinput.region\toptional\tJSON\ta part (set with --input)',
      'acme/still-2\tprice\t\t1–2 credits\tsampler heun: ×2',
    ]),
  )
  // runCli checks it against the published schemas.
  const document = JSON.parse(outputOf(await run('models acme/still-2 --json')))
  expect(document.price).toEqual(STILL.price)
  const { steps, loras, sampler, guidance, transparent } = STILL.input.properties
  expect(document.input.properties).toMatchObject({ steps, loras, sampler, guidance, transparent })
  const file = join(home, 'still-2.json')
  writeFileSync(file, JSON.stringify(STILL))
  expect((await run(`models add ${file}`)).stderr).toBe('Added acme/still-2.\n')
  expect((await run('models remove acme/still-2')).stderr).toBe('Removed acme/still-2.\n')
  expect(await run('models remove acme/still-2')).toMatchObject({ code: 2 })
  expect((await run('models acme/still-2')).stderr).toContain('Unknown model "acme/still-2".')
})

it.each([
  [
    'name: still\ninput: { steps: { type: integer, minimum: x } }',
    [/has 1 problem; .*: name must be a model name/s],
  ],
  [
    'name: a/still\ninput: { steps: { type: integer, minimum: x }, n: 7 }',
    [/: input\.steps: minimum must be a number\n/, /: input: n must be a map/],
  ],
  ['name: a/still\nprize: { run: 1 }', [/: "prize" is not a key of a model\. Did you mean "price"\?/]],
])('models add names each mistake of a document with its place: %j', async (text, mistakes) => {
  const { run } = createHome()
  const file = join(temporaryFolder(), 'still-2.yaml')
  writeFileSync(file, `kind: image\n${text}\n`)
  const message = usageErrorOf(await run(`models add ${file}`))
  for (const mistake of mistakes) expect(message).toMatch(mistake)
  expect(message).toContain(`${file} has ${mistakes.length} problem`)
})

it('--local uses the models of local.models, which can be set beside local', async () => {
  const { run, home } = createHome()
  const file = join(home, 'flux.yaml')
  writeFileSync(
    file,
    `{name: acme/flux, kind: image, engine: {type: preview}, input: {seed: {type: integer}}}`,
  )
  await run('config set local on')
  await run(`config set local.models ${file}`)
  expect(outputOf(await run('config list'))).toBe(`local=on\nlocal.models=${file}\n`)
  const env = {}
  expect(JSON.parse(outputOf(await run('run image x --seed 7 --dry-run', { env })))).toEqual({
    model: 'acme/flux',
    input: { prompt: 'x', seed: 7 },
  })
  expect(outputOf(await run('models', { env }))).toBe(
    'acme/flux\timage\t0 credits\tlocal\tdefault\nrushes/preview-video\tvideo\t0 credits\tlocal\tdefault\n',
  )
  await run('config unset local')
  expect(outputOf(await run('config list'))).toBe(`local.models=${file}\n`)
})

const fal = (more = '') =>
  `{name: fal-ai/flux/dev, kind: image, engine: {type: fal, model: fal-ai/flux/dev}, input: {image_urls: false}${more}}`

it('the default model of --local costs nothing, unless a document makes a paid one the default', async () => {
  const { run, home } = createHome()
  const file = join(home, 'models.yaml')
  await run(`config set local.models ${file}`)
  const modelOf = async (...documents: readonly string[]) => {
    writeFileSync(file, documents.join('\n---\n'))
    const { stdout } = await run('run image x --local --dry-run')
    return JSON.parse(stdout).model
  }
  const free = '{name: acme/flux, kind: image, engine: {type: preview}}'
  expect(await modelOf(fal())).toBe('rushes/preview-image')
  expect(await modelOf(fal(), free)).toBe('acme/flux')
  expect(await modelOf(free, fal(', default: true'))).toBe('fal-ai/flux/dev')
})

const MODELS: readonly ServedModel[] = [
  { document: { ...PREVIEW_DOCUMENTS.image, name: 'acme/still-1', default: undefined } },
  { document: { ...PREVIEW_DOCUMENTS.image, name: 'acme/still-2', default: true } },
  { document: { ...PREVIEW_DOCUMENTS.video, name: 'acme/cinema-1', default: undefined } },
]
const NO_MODELS = { RUSHES_API_KEY: '', RUSHES_IMAGE_MODEL: '', RUSHES_VIDEO_MODEL: '' }
const logIn = (service: CliService, flags = '') =>
  service.run(`login ${flags}`, { env: NO_MODELS, stdin: service.apiKey })

it('login sets the models that the service names', async () => {
  const service = await createCliService({ models: MODELS, hasList: true })
  const { code, stderr } = await logIn(service)
  expect(code).toBe(0)
  expect(lines(stderr).slice(2)).toEqual([
    "Set the service's models: models.video=acme/cinema-1, models.image=acme/still-2.",
  ])
  expect(outputOf(await service.run('models', { env: NO_MODELS }))).toContain(
    'acme/still-2\timage\t1–2 credits\tservice\tdefault\n',
  )
  // The next login keeps the choice of the user, and says nothing.
  await service.run('config set models.image acme/still-1')
  expect(lines((await logIn(service)).stderr)).toHaveLength(2)
  const image = async () => outputOf(await service.run('config get models.image', { env: NO_MODELS }))
  expect(await image()).toBe('acme/still-1\n')
  // The models of a service that is replaced are not those of the new one.
  expect((await logIn(service, '--base-url http://127.0.0.1:2')).code).toBe(0)
  expect(await image()).toBe('acme/still-2\n')
})

it('doctor warns of a model that is not in the kept list of the service', async () => {
  const service = await createCliService({ hasList: true })
  await service.run('models')
  const { stdout } = await service.run('doctor --json', { env: { RUSHES_IMAGE_MODEL: 'acme/none' } })
  expect(stdout).toContain(`acme/none is not in the service's list of models`)
})

it('login says which key commands use, and that a refused one was not stored', async () => {
  const service = await createCliService()
  const env = { ...NO_MODELS, RUSHES_API_KEY: 'rk_other' }
  const { stderr } = await service.run('login', { env, stdin: `${service.apiKey}\n` })
  expect(stderr).toContain('RUSHES_API_KEY is set: commands use that API key instead.\n')
  const refused = await service.run('login', { env: NO_MODELS, stdin: 'rk_wrong\n' })
  expect(refused.stderr).toMatch(/\nerror: The service answered 401: .* The API key was not stored\.\n/)
})

it.each([
  ['with --no-verify', '--no-verify', true, 1],
  ['at a service without a list', '', false, 2],
])('login %s sets no model', async (_, flags, hasList, count) => {
  const service = await createCliService({ models: MODELS, hasList })
  const { code, stderr } = await logIn(service, flags)
  expect({ code, lines: lines(stderr).length }).toEqual({ code: 0, lines: count })
  expect(outputOf(await service.run('config list', { env: NO_MODELS }))).toBe('')
})

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

const LIMITED = `${LINE} --max-cost 5`

it('a create under --max-cost is checked with the price that the service has now', async () => {
  const { run, list, creates } = open()
  outputOf(await run(LIMITED))
  list.answer = { status: 200, body: { models: [{ ...STILL, price: { run: 9 } }] } }
  expect(usageErrorOf(await run(LIMITED))).toContain('The estimate is 9')
  list.answer = { status: 200, body: { models: [{ ...STILL, price: { run: 4 } }] } }
  outputOf(await run(LIMITED))
  expect(outputOf(await run('spend'))).toMatch(/\t5\t/)
  expect({ asked: list.asked, created: creates().length }).toEqual({ asked: 3, created: 2 })
})

it('a create under --max-cost needs prices of the last day', async () => {
  const clock = createManualClock()
  const { home, run, list, creates } = createListedHome([STILL], { clock })
  outputOf(await run(LIMITED))
  list.answer = { status: 500 }
  clock.jump(86_400_000)
  const manifest = join(home, 'm.yaml')
  writeFileSync(manifest, '- {name: a, model: acme/still-2, prompt: x}')
  for (const line of [LIMITED, `${LIMITED} --dry-run`, `batch ${manifest} --max-cost 5`])
    expect((await run(line)).stderr).toContain(
      "error: The prices in the service's list of models could not be read",
    )
  outputOf(await run(LINE))
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
  expect(kept()).toHaveLength(1)
  list.answer = { status: 404 }
  outputOf(await run('models --refresh'))
  expect(kept()).toEqual([])
})

it('an added model whose file is damaged is not checked, with one warning, and the model of the service does not replace it', async () => {
  const { run, home, creates } = open()
  await run('models --refresh')
  const file = join(home, 'still-2.json')
  writeFileSync(file, JSON.stringify(STILL))
  await run(`models add ${file}`)
  writeFileSync(addedModelPath(join(home, 'config'), STILL.name), '{"name":')
  expect(await run(`${LINE} --input '{"steps":99}'`)).toMatchObject({
    code: 0,
    stderr:
      'warning: The added model file of acme/still-2 is damaged, so its parameters are not checked. Add the model again.\n',
  })
  expect(creates()).toMatchObject([{ input: { prompt: 'a fox', steps: 99 } }])
  expect(outputOf(await run('models'))).not.toContain('acme/still-2')
})

it('no help requests the list of a service', async () => {
  const { run, list } = open()
  for (const line of [
    'run image --model acme/x --help',
    'run image --help',
    'help run image',
    'run --help',
    'models --help',
  ])
    await run(line)
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
