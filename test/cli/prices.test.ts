/** Prices of the profile and of documents: the settings, `rushes models`, and what `run` estimates, limits and records. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Prices, readPrices } from '../../src/cli/models/prices.js'
import type { ModelDocument } from '../../src/protocol/models.js'
import {
  createCliService,
  createHome,
  lines,
  objects,
  outputOf,
  SET,
  temporaryFolder,
  usageErrorOf,
} from '../support/index.js'

const PRICES = {
  'acme/cinema-1': { run: 0.4, factors: { resolution: { '1080p': 1.5 }, duration: { 10: 2 } } },
  'acme/still-1': { run: 0.04 },
}
/** A document with its own price. */
const STILL_2 = {
  ...{ name: 'acme/still-2', kind: 'image', price: { run: 3, factors: { steps: { 20: 2 } } } },
  input: { steps: { type: 'integer', default: 20 }, hd: { type: 'boolean' } },
}

const profilesIn = (home: string) =>
  JSON.parse(readFileSync(join(home, 'config', 'config.json'), 'utf8')).profiles

/** A home with this profile, and with STILL_2. */
const homeWith = (config: object = {}) => createHome({ config, models: [STILL_2] })

const get = 'config get prices'

it('the setting `prices` can be set as an object, printed and removed', async () => {
  const { home, run } = createHome()
  outputOf(await run(['config', 'set', 'prices', JSON.stringify(PRICES)]))
  expect(profilesIn(home).default.prices).toEqual(PRICES)
  const text = JSON.stringify(PRICES)
  expect(outputOf(await run(get))).toBe(`${text}\n`)
  expect(JSON.parse(outputOf(await run(`${get} --json`)))).toEqual(PRICES)
  expect(outputOf(await run('config list'))).toBe(`prices=${text}\n`)
  expect(JSON.parse(outputOf(await run('config list --json')))).toEqual({ prices: PRICES })
  outputOf(await run('config unset prices'))
  usageErrorOf(await run(get))
})

it.each<[string, string]>([
  ['{"acme/x": {"run": 1}', 'prices is not valid JSON: '],
  [
    '{"acme/x": {"run": -1, "factors": {"a": 2, "b": {"1": "2"}}}, "y": {}}',
    'prices.acme/x.run must be a number from 0 to 1000000000 with at most six decimals; ' +
      'prices.acme/x.factors.a must be a map from a value to its factor; ' +
      'prices.acme/x.factors.b.1 must be a number from 0 to 1000000000 with at most six decimals; ' +
      '"y" is not a model name (provider/name).',
  ],
  [
    '{"acme/still-2": {"run": 1, "factors": {"speed": {}, "hd": {"yes": 2}}}}',
    'prices.acme/still-2.factors.speed is not a property of the input; ' +
      'prices.acme/still-2.factors.hd.yes "yes" is not one of true, false.',
  ],
  [
    '{"acme/cinema-1": {"run": 0.4, "factors": {"resolution": {"1080": 1.5}, "image_urls": {"1": 2}}}}',
    'prices.acme/cinema-1.factors.resolution.1080 "1080" is not one of 720p, 1080p; ' +
      'prices.acme/cinema-1.factors.image_urls is a list or a map: only text, numbers and booleans can have factors.',
  ],
])('the setting `prices` cannot be %s', async (value, problem) => {
  const { home, run } = homeWith({ prices: PRICES })
  expect(lines(usageErrorOf(await run(['config', 'set', 'prices', value])))[0]).toContain(problem)
  expect(profilesIn(home).default.prices).toEqual(PRICES)
})

const document: ModelDocument = {
  ...{ name: 'acme/still-2', kind: 'image', price: { run: 3, factors: {} } },
  input: {
    ...{ type: 'object', title: 'image', description: '', required: [] },
    properties: { steps: { type: 'integer', description: '', default: 20 } },
  },
}
const models = {
  find: (name: string) => (name === document.name ? document : undefined),
  listedAtMs: undefined,
}
const name = document.name

/** The prices of a profile, with their problems. */
function openOf(prices: unknown) {
  const problems: string[] = []
  const own = readPrices(prices, (each) => models.find(each)?.input, problems)
  return { opened: new Prices(models, 'USD', own), problems }
}

it.each<[string, unknown, number | undefined, string?]>([
  ['unknown in USD where only the document has a price, in credits', { 'acme/x': { run: 1 } }, undefined],
  ['that of the config', { [name]: { run: 0.5 } }, 500_000],
  ['0 where the config says so', { [name]: { run: 0 } }, 0],
  [
    'unknown where prices are a list',
    [{ run: 1 }],
    undefined,
    'prices must be an object by name of the model',
  ],
])('the price of a model with a document is %s', (_, prices, millionths, problem) => {
  const { opened, problems } = openOf(prices)
  const estimate = millionths === undefined ? undefined : { millionths, currency: 'USD' }
  expect(opened.estimate({ model: name, kind: 'image', input: {} })).toEqual(estimate)
  expect(problems.join('; ')).toBe(problem ?? '')
})

it('the price of an unknown input is the highest one', () => {
  const factors = { steps: { 20: 0.5, 30: 4 }, hd: { true: 0.1 } }
  const { opened } = openOf({ 'acme/x': { run: 1, factors } })
  expect(opened.estimate({ model: 'acme/x', kind: undefined, input: undefined })?.millionths).toBe(4_000_000)
})

it('the factors of a model without a document are not checked against a schema', () => {
  const prices = { 'acme/x': { run: 1, factors: { speed: { fast: 3 } } } }
  const { opened } = openOf(prices)
  const estimate = (model: string, input: Readonly<Record<string, unknown>>) =>
    opened.estimate({ model, kind: undefined, input })?.millionths
  expect(estimate('acme/x', { speed: 'fast' })).toBe(3_000_000)
  expect(estimate('acme/x', { speed: 'slow' })).toBe(1_000_000)
  expect(estimate('toString', {})).toBeUndefined()
})

it('models shows each price with its currency and its source', async () => {
  const { run } = homeWith({ prices: PRICES, currency: 'USD' })
  expect(outputOf(await run('models'))).toBe(
    'acme/still-2\timage\t3–6 credits\tadded\t\n' +
      'acme/cinema-1\tvideo\t0.4–1.2 USD\tbuilt-in\tdefault\n' +
      'acme/still-1\timage\t0.04 USD\tbuilt-in\tdefault\n',
  )
  const { models } = JSON.parse(outputOf(await run('models --json')))
  expect(models).toMatchObject([
    { name: 'acme/still-2', price: STILL_2.price, currency: 'credits' },
    { name: 'acme/cinema-1', price: PRICES['acme/cinema-1'], currency: 'USD' },
    { name: 'acme/still-1', price: { run: 0.04, factors: {} }, currency: 'USD' },
  ])
})

it('models <model> --json prints a document with the price, which can be added again', async () => {
  const { run } = homeWith({
    prices: { 'acme/still-2': { run: 0.5, factors: { hd: { true: 2 } } } },
  })
  expect(outputOf(await run('models acme/still-2'))).toContain(
    'acme/still-2\tprice\t\t0.5–1 credits\thd true: ×2\n',
  )
  const { stdout } = await run('models acme/still-2 --json')
  expect(JSON.parse(stdout)).toMatchObject({
    price: { run: 0.5, factors: { hd: { true: 2 } } },
    ...{ currency: 'credits' },
  })
  const path = join(temporaryFolder(), 'still-2.json')
  writeFileSync(path, stdout)
  outputOf(await run(`models add ${path}`))
  const unknown = JSON.parse(outputOf(await run('models acme/cinema-1 --json')))
  expect(unknown).toMatchObject({ price: null, currency: null })
})

const VIDEO = 'run video "a boat" --dry-run --resolution 1080p'

it('--dry-run prints an estimate on standard error, or in JSON', async () => {
  const { run } = homeWith({ prices: PRICES, currency: 'USD' })
  const body = '{"model":"acme/cinema-1","input":{"prompt":"a boat","resolution":"1080p"}}\n'
  expect(await run(`${VIDEO} -n 2`)).toMatchObject({
    ...{ code: 0, stdout: body.repeat(2), stderr: 'Estimate: 1.2 USD for 2 runs.\n' },
  })
  const { stdout, stderr } = await run(`${VIDEO} --json`)
  expect({ stderr, ...JSON.parse(stdout) }).toMatchObject({ stderr: '', estimate: 0.6, currency: 'USD' })
})

it('--dry-run says that no price of a model is known, which is null in JSON, and takes that of a document, with its defaults', async () => {
  const { run } = homeWith()
  expect((await run(VIDEO)).stderr).toBe(
    'No estimate: the price of acme/cinema-1 is not known here. `rushes models --refresh` asks the service for it.\n',
  )
  expect(JSON.parse(outputOf(await run(`${VIDEO} --json`)))).toMatchObject({
    estimate: null,
    currency: null,
  })
  const own = await run(`run model acme/still-2 --input '{"prompt":"x"}' --dry-run --json`)
  expect(JSON.parse(own.stdout)).toMatchObject({ estimate: 6, currency: 'credits' })
})

it('--dry-run has an estimate of 0 for local runs', async () => {
  const { run } = homeWith({ prices: PRICES, currency: 'USD' })
  expect(await run(`${VIDEO} --local --max-cost 0`)).toMatchObject({
    ...{ code: 0, stderr: 'Estimate: 0 credits for 1 run.\n' },
  })
})

it('a price of the config that is not valid brings one warning, and the price of the document is not used', async () => {
  const { home, run } = homeWith({ prices: { 'acme/still-2': { run: '1' } } })
  expect(await run('run image x --model acme/still-2 --dry-run')).toMatchObject({
    code: 0,
    stderr:
      `warning: ${join(home, 'config', 'config.json')}: prices.acme/still-2.run must be a number from 0 to ` +
      '1000000000 with at most six decimals. The model is treated as one without a price.\n' +
      'No estimate: acme/still-2 has no price.\n',
  })
})

const IMAGE = 'run image "a fox" --quality high --no-wait'
const ABOVE = 'error: The estimate is 6 USD, but --max-cost allows 5.999999 USD. Nothing was sent.'
const unknown = (model: string) =>
  `error: 1 run has no price in USD (${model}), so --max-cost cannot be checked. Nothing was sent.`

const price = { run: 1, factors: { quality: { high: 2 } } }
/** The price of a run of IMAGE is 2. */
const LIMITED = { prices: { 'acme/still-1': price, 'acme/x': price }, currency: 'USD' }

/** Counts the creates of a line. */
async function create(flags: string, profile: object, env: Readonly<Record<string, string>>) {
  const profiles = { default: { ...LIMITED, ...profile }, bare: { timeout: '1m' } }
  const { run, requests } = createHome({
    config: JSON.stringify({ profiles }),
    answers: [{ status: 201, body: { id: 'r1', status: 'queued' } }],
  })
  const ran = await run(`${IMAGE} ${flags}`, { env: { ...SET, ...env } })
  return { ...ran, created: requests.filter(({ method }) => method === 'POST').length }
}

it.each<[string, string, Record<string, string>, object, string | undefined]>([
  ['that is equal to the estimate allows it', '-n 3 --max-cost 6', {}, {}, undefined],
  ['below the estimate refuses it', '-n 3 --max-cost 5.999999', {}, {}, ABOVE],
  ['can be set by a variable', '-n 3', { RUSHES_MAX_COST: '5.999999' }, {}, ABOVE],
  ['can be set by a setting', '-n 3', {}, { maxCost: 5.999999 }, ABOVE],
  ['goes before the variable', '-n 3 --max-cost 6', { RUSHES_MAX_COST: '1' }, {}, undefined],
  ['of 0 allows a free model', '--max-cost 0', {}, { prices: { 'acme/still-1': { run: 0 } } }, undefined],
  ['refuses a model without a price', '--max-cost 9 --model acme/y', {}, {}, unknown('acme/y')],
  [
    'refuses a price that is not valid',
    '--max-cost 9',
    {},
    { prices: { 'acme/still-1': 2 } },
    unknown('acme/still-1'),
  ],
  [
    'refuses a model in a profile without prices',
    '--max-cost 9 --profile bare --model acme/x',
    {},
    {},
    unknown('acme/x').replace(' in USD', ''),
  ],
  ['must be an amount', '--max-cost "6 USD"', {}, {}, 'error: --max-cost: "6 USD" is not an amount.'],
])('--max-cost %s', async (_, words, env, profile, error) => {
  const { code, stderr, created } = await create(words, profile, env)
  const isRefused = error !== undefined
  expect({ code, isSent: created > 0 }).toEqual({ code: isRefused ? 2 : 0, isSent: !isRefused })
  if (isRefused) expect(lines(stderr).find((line) => !line.startsWith('warning: '))).toBe(error)
})

it('a limit whose prices cannot be asked for without a key ends with the error of the key', async () => {
  const { run, requests } = createHome({ env: { ...SET, RUSHES_API_KEY: '' }, answers: [] })
  const { code, stderr } = await run('run image "a fox" --model acme/y --max-cost 9')
  expect({ code, requests }).toEqual({ code: 4, requests: [] })
  expect(stderr).toMatch(/^error: Not set: API key for /)
})

it('the journal has the labels of each create, which are not sent', async () => {
  const service = await createCliService()
  await service.create('-n 2 --label " spring " --label cafe\u0301 --label spring')
  const row = { estimate: null, currency: null, labels: ['spring', 'caf\u00e9'] }
  expect(objects(outputOf(await service.run('list --json')))).toMatchObject([row, row])
  expect(JSON.stringify(service.creates())).not.toContain('spring')
})
