/** `rushes models search`: what fal and Replicate find, as a table, in a pipe and as JSON, and without one of them. */
import { expect, it } from 'vitest'
import { runCli } from '../../support/cli.js'
import {
  createHostedApis,
  FAL_MODELS,
  FAL_PRICES,
  priceOf,
  REPLICATE,
  schemaOf,
} from '../../support/hosted-apis.js'

const found = (id: string, category: string, others: object = {}) => ({
  endpoint_id: id,
  metadata: { display_name: id, category, description: `About\n${id}`, status: 'active', ...others },
})
const FAL = {
  models: [
    found('fal-ai/flux/dev', 'text-to-image'),
    found('fal-ai/veo3', 'text-to-video'),
    found('fal-ai/whisper', 'speech-to-text'),
    found('fal-ai/old', 'text-to-image', { status: 'deprecated' }),
  ],
  has_more: false,
}
/** Both forms of the answer: of `GET /v1/search` and of `QUERY /v1/models`. */
const SEARCH = {
  query: 'x',
  pages: [],
  collections: [],
  models: [{ metadata: { score: 1 }, model: schemaOf('replicate-wan-i2v') }],
}
const QUERY = { results: [{ owner: 'acme', name: 'x', run_count: 3, description: null }] }
const ROUTES: Parameters<typeof createHostedApis> = [
  [FAL_PRICES, priceOf('fal-ai/flux/dev', 0.025, 'megapixel')],
  [FAL_MODELS, { status: 200, body: FAL }],
  [`${REPLICATE}search`, { status: 200, body: SEARCH }],
]
const KEYS = { FAL_KEY: 'fal-secret', REPLICATE_API_TOKEN: 'r8_secret' }
const LINE = ['models', 'search', 'image', 'to', 'video']

it('prints tab-separated names, kinds, prices and run counts', async () => {
  const apis = createHostedApis(...ROUTES)
  const { code, stdout, stderr } = await runCli(LINE, { fetch: apis.fetch, env: KEYS })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toBe(
    [
      'fal:fal-ai/flux/dev\timage\t0.025 USD/megapixel\t\tAbout fal-ai/flux/dev',
      'fal:fal-ai/veo3\tvideo\t\t\tAbout fal-ai/veo3',
      'replicate:wavespeedai/wan-2.1-i2v-480p\tvideo\t\t1234567\t',
      '',
    ].join('\n'),
  )
  expect(
    apis.requests.map(({ url, headers }) => `${url.host}${url.search} ${headers.authorization}`),
  ).toEqual([
    'api.fal.ai?q=image+to+video&limit=40 Key fal-secret',
    'api.fal.ai?endpoint_id=fal-ai%2Fflux%2Fdev%2Cfal-ai%2Fveo3 Key fal-secret',
    'api.replicate.com?query=image+to+video Bearer r8_secret',
  ])
})

it('prints a table for a terminal, and the next command', async () => {
  const { fetch } = createHostedApis(...ROUTES)
  const options = { fetch, env: KEYS, tty: { stdout: true }, columns: 100 }
  const { stdout, stderr } = await runCli(LINE, options)
  expect(stdout).toMatch(
    /^NAME +KIND +PRICE +RUNS +DESCRIPTION\nfal:fal-ai\/flux\/dev +image +0\.025 USD\/megapixel/,
  )
  expect(stderr).toContain('Then: `rushes models import fal:fal-ai/flux/dev`')
})

it('prints JSON lines', async () => {
  const { fetch } = createHostedApis(...ROUTES.slice(0, 2), [
    `${REPLICATE}search`,
    { status: 200, body: QUERY },
  ])
  const { stdout } = await runCli([...LINE, '--json'], { fetch, env: KEYS })
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines[0]).toEqual({
    ...{ name: 'fal:fal-ai/flux/dev', kind: 'image', runs: null, description: 'About fal-ai/flux/dev' },
    price: { amount: 0.025, unit: 'megapixel', currency: 'USD' },
  })
  expect(lines[2]).toEqual({ name: 'replicate:acme/x', kind: null, runs: 3, description: '', price: null })
})

it('searches fal without any key, and says what Replicate needs', async () => {
  const apis = createHostedApis(...ROUTES)
  const { code, stdout, stderr } = await runCli(LINE, { fetch: apis.fetch })
  expect(code).toBe(0)
  expect(stdout.split('\n')).toHaveLength(3)
  expect(stderr).toContain('Replicate was not searched: set REPLICATE_API_TOKEN to your API token.')
  expect(apis.requests.every(({ headers }) => headers.authorization === undefined)).toBe(true)
})

it('lists models without prices if fal does not tell them', async () => {
  const { fetch } = createHostedApis([FAL_PRICES, { status: 401 }], ...ROUTES.slice(1))
  const { code, stdout } = await runCli(LINE, { fetch, env: KEYS })
  expect(code).toBe(0)
  expect(stdout).toContain('fal:fal-ai/flux/dev\timage\t\t\t')
})

it('fails only if no provider could be searched', async () => {
  const { fetch } = createHostedApis([FAL_MODELS, { status: 500 }])
  const one = await runCli(LINE, {
    fetch: createHostedApis([FAL_MODELS, 'the connection was refused'], ...ROUTES.slice(2)).fetch,
    env: KEYS,
  })
  expect(one.code).toBe(0)
  expect(one.stderr).toContain('fal was not searched: https://api.fal.ai: the connection was refused.')
  expect((await runCli(LINE, { fetch })).code).toBe(8)
})

it('says that nothing was found', async () => {
  const { fetch } = createHostedApis(
    [FAL_MODELS, { status: 200, body: { models: [] } }],
    [REPLICATE, { status: 200, body: {} }],
  )
  const { code, stdout, stderr } = await runCli(LINE, { fetch, env: KEYS })
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
  expect(stderr).toContain('No image or video model was found for "image to video".')
})
