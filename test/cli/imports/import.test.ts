/** `rushes models import`: whole commands against simulated providers, and what the imported documents are good for. */
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isPosix } from '../../../src/host/file-system.js'
import { readJson, writeJson } from '../../../src/protocol/json.js'
import {
  type CommandLine,
  createInstantEngine,
  outputOf,
  type RunOptions,
  runCli,
  temporaryFolder,
  usageErrorOf,
} from '../../support/index.js'
import { type Answer, createHostedApis } from '../../support/model-servers/hosted-apis.js'

const FAL_SCHEMA = 'https://fal.ai/api/openapi/queue/openapi.json?endpoint_id='
const REPLICATE = 'https://api.replicate.com/v1/'

/** Schemas in the form in which fal and Replicate publish them. */
const SCHEMAS = readFileSync(join(import.meta.dirname, 'schemas.json'), 'utf8')
// biome-ignore lint/suspicious/noExplicitAny: tests change parts of the published schemas
const { fal: FAL, replicate: SDXL } = readJson(SCHEMAS) as any

const FLUX = 'fal-ai/flux/dev'
const TOKEN = 'r8_secret'

/** A home, and commands in it with simulated providers. */
function placeWith(...routes: Parameters<typeof createHostedApis>) {
  const home = temporaryFolder()
  const apis = createHostedApis(...routes)
  const run = (line: CommandLine, options: RunOptions = {}) =>
    runCli(line, { home, fetch: apis.fetch, ...options })
  const folder = join(home, 'config', 'local-models')
  const keysSent = () =>
    apis.requests.flatMap(({ url, headers }) =>
      headers.authorization === undefined ? [] : [`${url.origin} ${headers.authorization}`],
    )
  return { home, run, folder, routes: apis.routes, requests: apis.requests, keysSent }
}

const flux = (): [string, Answer] => [FAL_SCHEMA + FLUX, { status: 200, body: FAL }]
const KEY = 'fal-key-id:fal-key-secret'
const withKey = { env: { FAL_KEY: KEY } }
const withToken = { env: { REPLICATE_API_TOKEN: TOKEN } }
const IMPORT = `models import fal:${FLUX}`

describe('an import from OpenRouter', () => {
  const OPENROUTER = 'https://openrouter.ai/api/v1/'
  const film = {
    ...{ id: 'acme/film', description: 'Films by text.', supported_durations: [4, 8] },
    ...{ supported_resolutions: ['720p', '1080p'], supported_aspect_ratios: ['16:9'] },
    ...{ supported_frame_images: ['first_frame', 'last_frame'], generate_audio: true, seed: null },
  }
  const still = {
    ...{ id: 'acme/still', description: 'Draws.', architecture: { input_modalities: ['text', 'image'] } },
    supported_parameters: {
      resolution: { type: 'enum', values: ['1K', '2K'] },
      n: { type: 'range', min: 1, max: 4 },
      output_compression: { type: 'range', min: 0, max: 100 },
      // It takes one: a whole number.
      seed: { type: 'boolean' },
    },
  }
  const place = () =>
    placeWith(
      [`${OPENROUTER}videos/models`, { status: 200, body: { data: [film] } }],
      [`${OPENROUTER}images/models`, { status: 200, body: { data: [still] } }],
    )

  it('takes the values of a video model', async () => {
    const stdout = outputOf(await place().run('models import openrouter:acme/film -o -'))
    expect(stdout).toMatchInlineSnapshot(`
      "name: acme/film
      kind: video
      engine:
        type: openrouter
        model: acme/film
        references: first_frame
      input:
        type: object
        required:
          - prompt
        properties:
          prompt:
            type: string
          duration:
            type: integer
            enum:
              - 4
              - 8
          resolution:
            type: string
            enum:
              - 720p
              - 1080p
          aspect_ratio:
            type: string
            enum:
              - 16:9
          generate_audio:
            type: boolean
          image_urls:
            type: array
            items:
              type: string
            maxItems: 1
          last_frame:
            type: string
            media: image
      "
    `)
  })

  it('takes the parameters of an image model, whose references are images', async () => {
    const { stdout } = await place().run('models import openrouter:acme/still -o -')
    expect(stdout).toMatchInlineSnapshot(`
      "name: acme/still
      kind: image
      engine:
        type: openrouter
        model: acme/still
        references:
          - input_references
      input:
        type: object
        required:
          - prompt
        properties:
          prompt:
            type: string
          image_urls:
            type: array
            items:
              type: string
          resolution:
            type: string
            enum:
              - 1K
              - 2K
          output_compression:
            type: integer
            minimum: 0
            maximum: 100
          seed:
            type: integer
            minimum: 0
      "
    `)
  })

  it('names a model that is in none of its lists', async () => {
    const ran = await place().run('models import openrouter:acme/other')
    expect(usageErrorOf(ran)).toContain('OpenRouter has no schema of acme/other')
  })
})

describe('an import from fal', () => {
  it('writes a document into a new folder of local.models, and prints its path', async () => {
    const { run, folder, keysSent } = placeWith(flux())
    const path = join(folder, 'fal-ai-flux-dev.yaml')
    const { code, stdout, stderr } = await run(IMPORT, withKey)
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${path}\n` })
    expect(stderr).toContain(`Set local.models to ${folder}`)
    expect(stderr).toContain(`${FLUX} has no cost yet: add what the provider charges for a run to the file`)
    expect(stderr).toContain(`Its flags: \`rushes run image --local --model ${FLUX} --help\``)
    expect(outputOf(await run('config get local.models'))).toBe(`${folder}\n`)
    expect(keysSent()).toEqual([])
    expect(readFileSync(path, 'utf8')).toMatchInlineSnapshot(`
      "name: fal-ai/flux/dev
      kind: image
      engine:
        type: fal
        model: fal-ai/flux/dev
        fixed:
          num_images: 1
          sync_mode: false
      input:
        type: object
        required:
          - prompt
        properties:
          prompt:
            type: string
            description: The prompt.
          image_size: {}
          seed:
            type: integer
            description: Same seed, same image.
          num_inference_steps:
            type: integer
            minimum: 1
            maximum: 50
            default: 28
      "
    `)
  })

  it('warns of what was left out', async () => {
    const body = structuredClone(FAL)
    body.components.schemas.FluxDevInput.properties.num_inference_steps.default = 200
    const { run } = placeWith([FAL_SCHEMA, { status: 200, body }])
    const { stderr } = await run(IMPORT)
    expect(stderr).toContain('num_inference_steps: default left out: must be')
  })

  it('replaces no file, and sends nothing before', async () => {
    const { run, requests } = placeWith(flux())
    expect(JSON.parse((await run(`${IMPORT} --json`)).stdout)).toMatchObject({ model: FLUX })
    requests.length = 0
    expect(usageErrorOf(await run(IMPORT))).toMatch(
      /fal-ai-flux-dev\.yaml already exists\.\s+Remove it first/,
    )
    expect(requests).toEqual([])
  })

  it.runIf(isPosix)('replaces no folder, link or pipe', async () => {
    const { run, home, requests } = placeWith(flux())
    const [folder = '', link = '', dangling = '', pipe = ''] = ['folder', 'link', 'dangling', 'pipe'].map(
      (name) => join(home, name),
    )
    mkdirSync(folder)
    symlinkSync(folder, link)
    symlinkSync(join(home, 'nothing'), dangling)
    execFileSync('mkfifo', [pipe])
    for (const path of [folder, link, dangling, pipe]) {
      const before = lstatSync(path)
      expect(usageErrorOf(await run(`${IMPORT} -o ${path}`))).toContain('another file with -o')
      expect(lstatSync(path).ino).toBe(before.ino)
    }
    expect(requests).toEqual([])
  })
})

describe('an import from Replicate', () => {
  const schnell = 'black-forest-labs/flux-schnell'
  const sdxl = (more: object = {}): Answer => ({ status: 200, body: { ...SDXL, ...more } })

  it('names the key that it needs', async () => {
    const { run } = placeWith([REPLICATE, { status: 401 }])
    expect(await run(`models import replicate:${schnell}`)).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('Check REPLICATE_API_TOKEN, your key of Replicate.'),
    })
  })

  it('pins the version of a community model, and not of an official one', async () => {
    const { run, keysSent, folder } = placeWith(
      [`${REPLICATE}models/${schnell}`, sdxl({ is_official: true })],
      [
        `${REPLICATE}models/wavespeedai/wan-2.1-i2v-480p`,
        sdxl({ default_example: { output: 'https://replicate.delivery/out.mp4' } }),
      ],
    )
    await run(`models import replicate:${schnell}`, withToken)
    await run('models import replicate:wavespeedai/wan-2.1-i2v-480p', withToken)
    const [official = '', community = ''] = readdirSync(folder).map((name) =>
      readFileSync(join(folder, name), 'utf8'),
    )
    expect(official).toContain(`model: ${schnell}\n`)
    expect(community).toMatch(
      /model: wavespeedai\/wan-2\.1-i2v-480p:7762fd07[0-9a-f]+\n {2}references: image\n/,
    )
    expect(community).toContain('kind: video')
    expect(new Set(keysSent())).toEqual(new Set([`https://api.replicate.com Bearer ${TOKEN}`]))
  })

  it('asks for the version that is named', async () => {
    const url = `${REPLICATE}models/stability-ai/sdxl/versions/abc`
    const { run } = placeWith([url, { status: 200, body: { ...SDXL.latest_version, id: 'abc' } }])
    const { stdout, stderr } = await run('models import replicate:stability-ai/sdxl:abc -o -', withToken)
    expect(stderr).toContain('does not say whether stability-ai/sdxl creates images or videos')
    expect(stdout).toContain('kind: image\n')
    expect(stdout).toContain('model: stability-ai/sdxl:abc\n')
    expect(stdout).toContain('maximum: 18446744073709551615\n')
  })

  it('reads a file in place of the provider', async () => {
    const { run, requests, folder } = placeWith()
    const file = join(temporaryFolder(), 'schema.json')
    writeFileSync(file, writeJson(SDXL))
    const { code } = await run(`models import replicate:${schnell} --from ${file}`)
    expect({ code, requests }).toEqual({ code: 0, requests: [] })
    expect(readdirSync(folder)).toEqual(['black-forest-labs-flux-schnell.yaml'])
  })

  it('sends no key to another origin that has the schema', async () => {
    const { run, keysSent } = placeWith(['https://example.com/', sdxl()])
    const line = 'models import replicate:stability-ai/sdxl --from https://example.com/sdxl.json'
    outputOf(await run(line, { env: { ...withKey.env, ...withToken.env } }))
    expect(keysSent()).toEqual([])
  })
})

describe('an import that fails writes nothing', () => {
  const fal = (answer: Answer | string): [string, Answer | string] => [FAL_SCHEMA, answer]
  it.each<[string, string, Parameters<typeof createHostedApis>, number, RegExp]>([
    ['for another word', 'comfy:x/y', [], 2, /"comfy:x\/y" is not a model to import/],
    [
      'for an unknown endpoint',
      `fal:${FLUX}`,
      [],
      2,
      /fal has no schema of fal-ai\/flux\/dev[\s\S]*Examples: fal:/,
    ],
    [
      'if the key is refused',
      'replicate:a/b',
      [[REPLICATE, { status: 401, body: { detail: `bad ${TOKEN}` } }]],
      4,
      /answered 401: bad \[key\]\.\s+Check REPLICATE_API_TOKEN/,
    ],
    ['at a limit', `fal:${FLUX}`, [fal({ status: 429 })], 7, /answered 429/],
    ['if the provider is broken', `fal:${FLUX}`, [fal({ status: 503 })], 8, /answered 503/],
    ['if the answer is a page', `fal:${FLUX}`, [fal({ status: 200, body: '<html>' })], 8, /not JSON/],
    [
      'without a network',
      `fal:${FLUX}`,
      [fal('the connection was refused')],
      9,
      /fal\.ai: the connection was refused/,
    ],
    [
      'for a file that does not exist',
      'replicate:a/b --from none.json',
      [],
      2,
      /none\.json cannot be read: no such file/,
    ],
  ])('%s', async (_, words, routes, code, message) => {
    const { run, folder } = placeWith(...routes)
    const ran = await run(`models import ${words}`, withToken)
    expect(ran).toMatchObject({ code, stdout: '' })
    expect(ran.stderr).toMatch(message)
    expect(ran.stderr).not.toContain(TOKEN)
    expect(existsSync(folder)).toBe(false)
  })

  it('into a local.models that is a file', async () => {
    const { run, home } = placeWith(flux())
    writeFileSync(join(home, 'one.yaml'), 'name: a/b')
    await run(`config set local.models ${join(home, 'one.yaml')}`)
    expect(usageErrorOf(await run(IMPORT))).toMatch(
      /one\.yaml\/fal-ai-flux-dev\.yaml: .* is a file, not a folder\.\s+.*with -o/,
    )
    outputOf(await run(`${IMPORT} -o ${join(home, 'new', 'flux.yaml')}`))
  })
})

describe('an imported model with --local', () => {
  const RUN = `run image --local --model ${FLUX} "a fox"`

  /** A place with the model, and with what it costs in its document. */
  async function placeWithCost() {
    const place = placeWith(flux())
    await place.run(IMPORT)
    appendFileSync(join(place.folder, 'fal-ai-flux-dev.yaml'), 'cost: { run: 0.025, currency: USD }\n')
    return place
  }

  it('appears in the list with its cost, and has the flags of its schema', async () => {
    const { run } = await placeWithCost()
    expect(outputOf(await run('models --local'))).toContain(`${FLUX}\timage\t0.025 USD\tlocal\t`)
    const { stdout } = await run(`models ${FLUX} --local --json`)
    expect(JSON.parse(stdout)).toMatchObject({ price: { run: 0.025 }, currency: 'USD' })
    for (const image_size of ['square', { width: 640, height: 480 }]) {
      const input = JSON.stringify({ image_size })
      const body = await run(`${RUN} --input '${input}' --num-inference-steps 9 --dry-run`)
      expect(JSON.parse(body.stdout).input).toEqual({ prompt: 'a fox', image_size, num_inference_steps: 9 })
    }
    usageErrorOf(await run(`${RUN} --image-size square --dry-run`))
    usageErrorOf(await run(`${RUN} --num-inference-steps 90 --dry-run`))
  })

  it('has an estimate in the currency of its cost, and --max-cost counts it', async () => {
    const { run } = await placeWithCost()
    expect((await run(`${RUN} -n 4 --dry-run`)).stderr).toBe('Estimate: 0.1 USD for 4 runs.\n')
    expect(usageErrorOf(await run(`${RUN} -n 4 --max-cost 0.09`))).toContain(
      'The estimate is 0.1 USD, but --max-cost allows 0.09 USD.',
    )
    // The preview is free in any currency.
    expect((await run('run video --local "a fox" --dry-run')).stderr).toBe('Estimate: 0 USD for 1 run.\n')
  })
})

it('documents beside imported ones stay as they are, and their models work without the key of the provider', async () => {
  const { run, folder, home } = placeWith(flux())
  mkdirSync(folder, { recursive: true })
  const [mine, text] = [
    join(folder, 'mine.yaml'),
    'name: acme/mine\nkind: image\nengine: { type: preview }\n',
  ]
  writeFileSync(mine, text)
  await run(`config set local.models ${folder}`)
  await run(IMPORT)
  expect(readFileSync(mine, 'utf8')).toBe(text)
  // Without a cost, the price of an imported model is unknown.
  expect(outputOf(await run('models --local')).match(/^[^\t]+\t\w+\t[^\t]*/gm)).toEqual([
    `${FLUX}\timage\t`,
    'acme/mine\timage\t0 credits',
    'rushes/preview-video\tvideo\t0 credits',
  ])
  const line = `run image --local --model acme/mine "a fox" -o ${join(home, 'x.png')}`
  outputOf(await run(line, { engine: createInstantEngine() }))
})
