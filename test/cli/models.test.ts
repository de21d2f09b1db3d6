/** Models as documents: where they come from, how they are kept, and the flags that follow from them. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { checkList, findKept } from '../../src/cli/models/known-models.js'
import { type Fetch, HttpFailure } from '../../src/host/http.js'
import { MODELS_PATH } from '../../src/protocol/id.js'
import { PREVIEW_DOCUMENTS, type ServedModel } from '../../src/service/models/served-model.js'
import {
  type CliService,
  type CommandLine,
  createCliService,
  createHome,
  createManualClock,
  type HomeOptions,
  type RunOptions,
  runCli,
  SET,
  scripted,
  scriptedList,
  temporaryFolder,
} from '../support/index.js'

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
      negative_prompt: { type: 'string', maxLength: 20, description: 'what to avoid' },
      sampler: { type: 'string', enum: ['euler', 'heun'], description: 'method' },
      guidance: { type: 'number', minimum: 0.5, description: 'how closely to follow' },
      transparent: { type: 'boolean', description: 'without a background' },
      output: { type: 'string', description: 'collides' },
      region: { type: 'object', description: 'a part' },
      no_logo: { type: 'boolean', description: 'without a logo' },
      to_string: { type: 'array', items: { type: 'string' }, description: 'inherited' },
    },
  },
  price: { run: 1, factors: { sampler: { heun: 2 } } },
}
const { fetch: noList } = scriptedList({ status: 404 })
const CINEMA = { name: 'acme/cinema-2', kind: 'video' }
const MUTE = { name: 'acme/mute', kind: 'image', input: { prompt: false } }

const listOf = (...models: readonly unknown[]) => scriptedList({ status: 200, body: { models } })

it('a kept list has the documents by their names', () => {
  const { warning, models } = checkList([CINEMA, STILL, { ...CINEMA, name: 'a/"b\\' }])
  expect(warning).toBeUndefined()
  for (const name of ['acme/cinema-2', 'acme/still-2', 'a/"b\\'])
    expect(findKept(models, name)).toMatchObject({ name })
  for (const name of ['acme/still', 'still-2', '__proto__', 'toString'])
    expect(findKept(models, name)).toBeUndefined()
  expect(findKept({ 'a/b': '{"name":' }, 'a/b')).toBeUndefined()
})

it('a kept list leaves out what is not valid, and says it in one sentence', () => {
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
])('the model of a line %s', async (line, model, prompt) => {
  const words = line.replace(/run (image|model)/, '$& --dry-run').split(' ')
  const { code, stdout } = await runCli(words, { env: SET, fetch: noList })
  expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 0, model, input: { prompt } })
})

const LINE = ['run', 'image', 'a fox', '--model', 'acme/still-2', '--no-wait']

/** A service with a list, whose creates are counted. */
function serviceWith(models: readonly unknown[]) {
  const created = scripted({ status: 201, body: { id: 'run_1' } })
  const list = listOf(...models)
  const fetch: Fetch = (request) =>
    (request.url.pathname.endsWith(MODELS_PATH) ? list : created).fetch(request)
  return {
    asked: list.requests,
    bodies: () => created.requests.map(({ body }) => JSON.parse(Buffer.from(body ?? '').toString())),
    fetch,
  }
}

it('the list of a service is requested once for an unknown model, and gives it flags', async () => {
  const { run, home } = createHome()
  const { asked, bodies, fetch } = serviceWith([STILL])
  const flags = [
    '--steps',
    '30',
    '--loras',
    'a',
    '--loras',
    '-',
    '--to-string',
    'x',
    '--input',
    '{"region":{"x":1}}',
  ]
  for (let count = 0; count < 2; count++)
    expect(await run([...LINE, ...flags], { fetch })).toMatchObject({
      code: 0,
      stderr: '',
    })
  expect(asked).toHaveLength(1)
  expect(bodies()[1]).toEqual({
    model: 'acme/still-2',
    input: { prompt: 'a fox', region: { x: 1 }, steps: 30, loras: ['a', '-'], to_string: ['x'] },
  })
  const [file = ''] = readdirSync(join(home, 'state', 'models'))
  expect(statSync(join(home, 'state', 'models', file)).mode & 0o777).toBe(0o600)
  expect(readFileSync(join(home, 'state', 'models', file), 'utf8')).not.toContain(SET.RUSHES_API_KEY)
})

it('the list of a service stays unrequested by help', async () => {
  const { run } = createHome()
  const { asked, fetch } = serviceWith([STILL])
  for (const line of [
    [...LINE.slice(0, -1), '--help'],
    ['help', 'run', 'image'],
    ['run', '--help'],
    ['models', '--help'],
  ])
    await run(line, { fetch })
  expect(asked).toEqual([])
})

const SET_STILL = { ...SET, RUSHES_IMAGE_MODEL: 'acme/still-2' }
it('the list of a service stays unrequested by a run that the built-in flags allow, also with --dry-run', async () => {
  const { run } = createHome()
  const { asked, bodies, fetch } = serviceWith([STILL])
  const line = ['run', 'image', 'a fox', '--no-wait', '--quality', 'high']
  for (const flags of [[], ['--dry-run']])
    expect((await run([...line, ...flags], { fetch, env: SET_STILL })).code).toBe(0)
  expect({ asked: asked.length, created: bodies().length }).toEqual({ asked: 0, created: 1 })
})

it.each<[string, readonly string[]]>([
  ['has an unknown flag', [...LINE.slice(0, 3), '--steps', '3', '--no-wait']],
  ['has no prompt', ['run', 'image', '--input', '{"steps":3}', '--no-wait']],
  [
    'has a value that the built-in flag does not have',
    [...LINE.slice(0, 3), '--aspect-ratio', '5:4', '--no-wait'],
  ],
  ['is of another kind', ['run', 'video', 'a fox', '--model', 'acme/cinema-2', '--no-wait']],
])('the list of a service is asked for once if the line %s: %j', async (_, line) => {
  const { run } = createHome()
  const { properties } = STILL.input
  const ratio = { type: 'string', enum: ['5:4'], description: '' }
  const input = { ...STILL.input, required: [], properties: { ...properties, aspect_ratio: ratio } }
  const { asked, bodies, fetch } = serviceWith([{ ...STILL, input }, CINEMA])
  // The kept list is from a time when the model was an image model.
  if (line.includes('video')) {
    const earlier = listOf({ ...CINEMA, kind: 'image' })
    await run('models', { fetch: earlier.fetch })
  }
  for (let again = 0; again < 2; again++)
    expect(await run(line, { fetch, env: SET_STILL })).toMatchObject({ code: 0 })
  expect(asked).toHaveLength(1)
  expect(bodies()).toHaveLength(line.includes('--no-wait') ? 2 : 0)
})

it('the list of a service is printed as a table, as the service has it now', async () => {
  const { run } = createHome({ models: [{ ...STILL, price: { run: 0.5 } }] })
  const { asked, fetch } = serviceWith([STILL, CINEMA])
  const rows = 'acme/still-2\timage\t0.5 credits\tadded\t\nacme/cinema-2\tvideo\t\tservice\tdefault\n'
  const env = { ...SET, RUSHES_VIDEO_MODEL: 'acme/cinema-2' }
  for (let count = 0; count < 2; count++)
    expect((await run('models --refresh', { env, fetch })).stdout).toBe(
      `${rows}acme/still-1\timage\t\tbuilt-in\tdefault\n`,
    )
  const silent: Fetch = async () => {
    throw new HttpFailure('getaddrinfo ENOTFOUND', { sent: false })
  }
  for (const [answer, note] of [
    [fetch, ''],
    [
      silent,
      'warning: The service did not send its list of models and prices. This one is from 2026-01-01.\n',
    ],
  ] as const)
    expect(await run('models', { env, fetch: answer })).toMatchObject({
      ...{ code: 0, stderr: note, stdout: expect.stringContaining(rows) },
    })
  expect(asked).toHaveLength(3)
})

it.each<[string, { status: number; body?: unknown }, number, RegExp]>([
  ['404', { status: 404 }, 0, /has no list of models: it answered 404\./],
  ['a page', { status: 200, body: '<html>' }, 0, /its response is not a list of models/],
  ['9 MiB', { status: 200, body: 'x'.repeat(9 * 1_048_576) }, 0, /larger than 8388608 bytes/],
  ['401', { status: 401 }, 4, /error: The service answered 401/],
  ['500', { status: 500 }, 8, /error: The service answered 500/],
])('the list of a service that is %s', async (_, answer, code, message) => {
  const { run } = createHome()
  const { fetch } = scriptedList(answer)
  const ran = await run('models --refresh', { fetch })
  expect(ran.stderr).toMatch(message)
  expect(ran.code).toBe(code)
  // A command that only wants to know it prints what it knows.
  expect(await run('models', { fetch })).toMatchObject({ code: 0, stderr: '' })
})

it('the list of a service with an invalid document costs one warning, and the others are used', async () => {
  const { run } = createHome()
  const { fetch } = serviceWith([{ name: 'acme/broken', kind: 'image', input: 7 }, STILL])
  const { stderr, code } = await run([...LINE, '--steps', '3'], { fetch })
  expect(code).toBe(0)
  expect(stderr).toBe(
    "warning: The service's list has 1 invalid model: acme/broken (input must be a map). " +
      'Use these models with --input; their parameters are not checked.\n',
  )
  expect((await run([...LINE, '--steps', '3'], { fetch })).stderr).toBe('')
})

it('the list of a service stays unrequested when the key cannot be read, and the command of the key runs once', async () => {
  const { run, home } = createHome()
  const env = { ...SET, RUSHES_API_KEY: '', RUSHES_API_KEY_COMMAND: `echo x >> "${home}/log"; exit 1` }
  expect((await run(LINE, { env })).code).toBe(4)
  expect(readFileSync(join(home, 'log'), 'utf8')).toBe('x\n')
})

it('the list of a service delays a command that says no by at most two seconds when it never arrives', async () => {
  const { run } = createHome()
  const clock = createManualClock()
  const startedMs = clock.monotonic()
  let asked = 0
  const fetch: Fetch = ({ signal }) => {
    asked++
    void clock.advance(2_000)
    return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
  }
  const { code, stderr } = await run([...LINE, '--steps', '3', '--dry-run'], { clock, fetch })
  expect({ code, asked }).toEqual({ code: 2, asked: 1 })
  expect(stderr).toContain('Unknown flag --steps.')
  expect(clock.monotonic() - startedMs).toBe(2_000)
})

const errorOf = async (line: CommandLine, ...models: NonNullable<HomeOptions['models']>) => {
  const { code, stdout, stderr } = await createHome({ models }).run(line)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  return stderr
}
const STILL_LINE = ['run', 'image', 'a fox', '--dry-run', '--model', 'acme/still-2']

it('a flag of a document is in its help, with what else it takes', async () => {
  const { run } = createHome({ models: [STILL] })
  const wide: RunOptions = { tty: { stdout: true }, columns: 200 }
  const help = await run('run image --help --model acme/still-2', wide)
  expect(help.code).toBe(0)
  const lines = help.stdout.split('\n').map((line) => line.trim().replace(/ {2,}/g, '  '))
  expect(lines).toEqual(
    expect.arrayContaining([
      'acme/still-2: A small model',
      'Set with --input: output, region, no_logo',
      '--steps <n>  Denoising steps: a whole number from 1 to 50 (default: 20)',
      '--loras <text>  Adapters (repeatable, at most 2)',
      '--sampler <value>  Method: euler, heun',
      '--styles <text>  Looks (repeatable: ink, oil)',
      '--guidance <n>  How closely to follow: a number from 0.5',
      '--transparent  Without a background',
      '--no-transparent  Turn --transparent off',
    ]),
  )
  expect(help.stdout).not.toContain('--aspect-ratio')
  const env = { ...SET, RUSHES_IMAGE_MODEL: 'acme/still-2' }
  expect((await run('run image --help', { ...wide, env })).stdout).toBe(help.stdout)
})

it.each<[readonly string[], RegExp]>([
  [
    ['--steps', '51'],
    /^error: --steps must be a whole number from 1 to 50, not 51\.\n {2}See all .*`rushes models acme\/still-2`/,
  ],
  [['--sampler', 'eulr'], /--sampler must be one of euler, heun, not "eulr" \(did you mean "euler"\?\)/],
  [['--negative-prompt', 'x'.repeat(21)], /--negative-prompt must have at most 20 characters, not 21/],
  [['--loras', 'a', '--loras', 'b', '--loras', 'c'], /--loras takes at most 2, not 3/],
  [['--styles', 'ink', '--styles', 'x'], /--styles \(entry 2\) must be one of ink, oil, not "x"/],
  [['--input', '{"no_logo":1}'], /input\.no_logo must be true or false, not 1/],
  [
    ['--aspect-ratio', '1:1'],
    /Unknown flag --aspect-ratio\. acme\/still-2 does not have it\.\n {2}See `rushes models acme\/still-2`/,
  ],
  [['--step', '3'], /Did you mean --steps\?/],
])('a flag %j', async (flags, message) =>
  expect(await errorOf([...STILL_LINE, ...flags], STILL)).toMatch(message),
)

it('a flag of an unknown model says how to learn its parameters', async () => {
  expect(await errorOf([...STILL_LINE, '--guidance', '3'])).toMatch(
    /Unknown flag --guidance\. The parameters of acme\/still-2 are not known here\.\n.*rushes models --refresh/,
  )
})

it('a flag needs the kind of its document', async () => {
  expect(await errorOf('run image x --model acme/cinema-2', CINEMA)).toBe(
    'error: acme/cinema-2 is a model of kind video.\n  Use `rushes run video --model acme/cinema-2`.\n',
  )
  const { run } = createHome({ models: [CINEMA] })
  const env = { ...SET, RUSHES_IMAGE_MODEL: 'acme/cinema-2' }
  expect((await run('run image x --dry-run', { env })).stderr).toContain(
    'The image model is set to acme/cinema-2, which is a model of kind video.',
  )
  expect((await run('run image --help', { env })).code).toBe(0)
  const { fetch } = scriptedList({ status: 404 })
  expect((await run('doctor --json', { env, fetch })).stdout).toContain('which is a model of kind video')
})

it('a flag of a model without a prompt', async () => {
  const line = ['run', 'image', '--model', 'acme/mute', '--dry-run']
  expect(await errorOf([...line, 'a fox'], MUTE)).toContain(
    'acme/mute takes no prompt, but the arguments contain one.',
  )
  const { run } = createHome({ models: [MUTE] })
  expect(JSON.parse((await run([...line, '--quality', 'high'])).stdout).input).toEqual({ quality: 'high' })
})

it('a flag of `run model` is checked in --input', async () => {
  const line = ['run', 'model', 'acme/still-2', '--dry-run', '--input', '{"prompt":"x","steps":0,"output":7}']
  expect(await errorOf(line, STILL)).toMatch(
    /input\.steps must be .*, not 0\. input\.output must be text, not .*\./,
  )
})

it('an added model shows its parameters and its price, and can be removed', async () => {
  const { run } = createHome({ models: [STILL] })
  const { stdout } = await run('models acme/still-2')
  expect(stdout.split('\n')).toEqual(
    expect.arrayContaining([
      'acme/still-2\t--prompt\trequired\ttext\tText',
      'acme/still-2\t--steps\toptional\twhole number from 1 to 50\tdenoising steps (default: 20)',
      'acme/still-2\t--sampler\toptional\teuler heun\tmethod',
      'acme/still-2\t--guidance\toptional\tnumber from 0.5\thow closely to follow',
      'acme/still-2\t--transparent\toptional\ttrue or false\twithout a background',
      'acme/still-2\tinput.region\toptional\tJSON\ta part (set with --input)',
      'acme/still-2\tprice\t\t1–2 credits\tsampler heun: ×2',
    ]),
  )
  // runCli checks it against the published schemas.
  const document = JSON.parse((await run('models acme/still-2 --json')).stdout)
  expect(document.price).toEqual(STILL.price)
  const { steps, loras, sampler, guidance, transparent } = STILL.input.properties
  expect(document.input.properties).toMatchObject({ steps, loras, sampler, guidance, transparent })
  expect((await run('models add -', { stdin: JSON.stringify(STILL) })).stderr).toBe(
    'Replaced acme/still-2.\n',
  )
  expect((await run('models remove acme/still-2')).stderr).toBe('Removed acme/still-2.\n')
  expect(await run('models remove acme/still-2')).toMatchObject({ code: 2 })
  expect((await run('models acme/still-2')).stderr).toContain('Unknown model "acme/still-2".')
})

it('an added model needs a correct document: each mistake is named with its place', async () => {
  const { run } = createHome()
  const file = join(temporaryFolder(), 'still-2.yaml')
  writeFileSync(
    file,
    'name: still\nkind: image\nengine: { type: nosuch }\ninput:\n  steps: { type: integer, minimum: x }\n',
  )
  const { code, stderr } = await run(`models add ${file}`)
  expect(code).toBe(2)
  expect(stderr).toContain(`${file} has 1 problem; nothing was added.\n  ${file}: name must be a model name`)
  writeFileSync(file, 'name: a/still\nkind: image\ninput:\n  steps: { type: integer, minimum: x }\n  n: 7\n')
  expect((await run(`models add ${file}`)).stderr).toMatch(
    /still-2\.yaml: input\.steps: minimum must be a number\n.*still-2\.yaml: input: n must be a map/,
  )
  writeFileSync(file, 'name: a/still\nkind: image\nprize: { run: 1 }\n')
  expect((await run(`models add ${file}`)).stderr).toContain(
    'still-2.yaml: "prize" is not a key of a model. Did you mean "price"?',
  )
  expect((await run('models add nosuch.yaml')).stderr).toContain('nosuch.yaml: no such file')
})

it('the models of --local come from local.models, which can be set beside local', async () => {
  const { run, home } = createHome()
  const file = join(home, 'flux.yaml')
  writeFileSync(
    file,
    `{name: acme/flux, kind: image, engine: {type: preview}, input: {seed: {type: integer}}}`,
  )
  expect((await run('config set local on')).code).toBe(0)
  expect((await run(`config set local.models ${file}`)).code).toBe(0)
  expect((await run('config list')).stdout).toBe(`local=on\nlocal.models=${file}\n`)
  const env = {}
  expect(JSON.parse((await run('run image x --seed 7 --dry-run', { env })).stdout)).toEqual({
    model: 'acme/flux',
    input: { prompt: 'x', seed: 7 },
  })
  expect((await run('models', { env })).stdout).toBe(
    'acme/flux\timage\t0 credits\tlocal\tdefault\nrushes/preview-video\tvideo\t0 credits\tlocal\tdefault\n',
  )
  expect((await run('config unset local')).code).toBe(0)
  expect((await run('config list')).stdout).toBe(`local.models=${file}\n`)
  expect((await run('config unset local.models')).code).toBe(0)
  expect((await run('config list')).stdout).toBe('')
})

const fal = (more = '') =>
  `{name: fal-ai/flux/dev, kind: image, engine: {type: fal, model: fal-ai/flux/dev}, input: {image_urls: false}${more}}`

it('the models of --local cost nothing by default, unless a document makes a paid model the default', async () => {
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
const logIn = (service: CliService, words: readonly string[] = [], fetch: Fetch = service.fetch) =>
  service.run(['login', ...words], { env: NO_MODELS, stdin: service.apiKey, fetch })

it('login sets the models that the service names', async () => {
  const service = await createCliService({ models: MODELS })
  const { code, stderr } = await logIn(service)
  expect(code).toBe(0)
  expect(stderr.split('\n').slice(2, -1)).toEqual([
    'The service URL is from RUSHES_BASE_URL. To store it too, use --base-url.',
    "Set the service's models: models.video=acme/cinema-1, models.image=acme/still-2.",
  ])
  expect((await service.run('models', { env: NO_MODELS, fetch: service.fetch })).stdout).toContain(
    'acme/still-2\timage\t1–2 credits\tservice\tdefault\n',
  )
  // The next login has nothing to say, also after a choice of the user.
  await service.run('config set models.image acme/still-1')
  expect((await logIn(service)).stderr.split('\n')).toHaveLength(4)
  const examined = await service.run('doctor --json', {
    env: { ...NO_MODELS, RUSHES_API_KEY: service.apiKey, RUSHES_IMAGE_MODEL: 'acme/none' },
    fetch: service.fetch,
  })
  expect(examined.stdout).toContain(`acme/none is not in the service's list of models`)
})

it('login says which key commands use, and names no run in an error', async () => {
  const service = await createCliService()
  const env = { ...NO_MODELS, RUSHES_API_KEY: 'rk_other' }
  const { stderr } = await service.run('login', { env, stdin: `${service.apiKey}\n` })
  expect(stderr).toContain('RUSHES_API_KEY is set: commands use that API key instead.\n')
  const refused = await service.run('login', { env: NO_MODELS, stdin: 'rk_wrong\n' })
  expect(refused.stderr).toMatch(/\nerror: The service answered 401: .* The API key was not stored\.\n/)
})

it.each([
  ['with --no-verify', ['--no-verify'], true, 3],
  ['at a service without a list', [], false, 4],
])('login %s sets none', async (_, words, hasList, lines) => {
  const service = await createCliService({ models: MODELS })
  const none = scriptedList({ status: 404 })
  const { code, stderr } = await logIn(service, words, (request) =>
    hasList || !request.url.pathname.endsWith(MODELS_PATH) ? service.fetch(request) : none.fetch(request),
  )
  expect({ code, lines: stderr.split('\n').length }).toEqual({ code: 0, lines })
  expect((await service.run('config list', { env: NO_MODELS })).stdout).toBe('')
})
