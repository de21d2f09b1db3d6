/** What the operator of a service pays: the map `cost`, engines that charge, prices that follow, and hosted engines. */
import { describe, expect, it } from 'vitest'
import { RushesError } from '../../../src/errors.js'
import { type HostedModel, readHosted } from '../../../src/service/engines/hosted/index.js'
import type { EngineParts } from '../../../src/service/engines/settings.js'
import { ENGINE_TYPES } from '../../../src/service/models/engine-table.js'
import { openModelSet } from '../../../src/service/models/model-set.js'
import { chargesForRuns } from '../../../src/service/models/model-with-engine.js'
import { readModels } from '../../../src/service/models/read-models.js'
import { modelsFile } from '../../support/model-servers/engine.js'

const ENV = { FAL_KEY: 'fal-secret', REPLICATE_API_TOKEN: 'r8_secret' }
const FAL = { type: 'fal', model: 'fal-ai/flux/dev' }

const fileOf = (document: object) =>
  modelsFile({ name: 'acme/x', kind: 'video', input: { image_urls: false }, ...document })

const read = (document: object, env = ENV, types = ENGINE_TYPES) =>
  readModels({ path: fileOf(document), env, types })[0]

function problemsOf(document: object, env = {}): string {
  try {
    read(document, env as typeof ENV)
    return ''
  } catch (error) {
    if (!(error instanceof RushesError)) throw error
    return (error.hint ?? error.message).replaceAll(/^\S+: /gm, '')
  }
}

describe('the cost of a document', () => {
  const COST = { run: 0.25, factors: { duration: { 10: 2 } }, currency: 'USD' }

  it('has the form of a price, with a currency', () =>
    expect(read({ engine: FAL, cost: COST })?.document).toMatchObject({ cost: COST }))

  it.each([
    ['without a currency', { run: 1 }, 'cost: currency must be a currency, such as USD'],
    [
      'with an invalid currency',
      { ...COST, currency: 'US dollars' },
      'cost: currency must be a currency, such as USD',
    ],
    [
      'without an amount',
      { currency: 'USD' },
      'cost: run must be a number from 0 to 1000000000 with at most six decimals',
    ],
    ['with another key', { ...COST, unit: 'image' }, 'cost: "unit" is not a key of a cost.'],
    [
      'with another value',
      { ...COST, factors: { duration: { 7: 2 } } },
      'cost.factors.duration: "7" is not one of 5, 10',
    ],
  ])('%s is a problem with its place', (_, cost, problem) =>
    expect(problemsOf({ engine: FAL, cost }, ENV)).toBe(problem),
  )

  it.each([
    [FAL, true],
    [{ type: 'replicate', model: 'a/b', url: 'http://127.0.0.1:9' }, true],
    [{ type: 'images', url: 'https://api.openai.com/v1' }, true],
    [{ type: 'images', url: 'http://8.8.8.8/v1' }, true],
    [{ type: 'images', url: 'http://127.0.0.1:1234/v1' }, false],
    [{ type: 'images', url: 'http://10.0.0.7/v1' }, false],
    [{ type: 'images', url: 'http://[::1]:8000/v1' }, false],
    [{ type: 'images', url: 'http://[2606:4700::1]/v1' }, true],
    [{ type: 'images', url: 'http://gpu:8000/v1' }, false],
    [{ type: 'images', url: 'http://gpu.local:8000/v1' }, false],
    [{ type: 'cog', url: 'http://localhost:5000' }, false],
    [{ type: 'cog', url: 'https://cog.example.com' }, true],
    [{ type: 'command', command: 'x' }, false],
    [{ type: 'preview' }, false],
  ])('is unknown, and not nothing, for an engine that charges: %j', (engine, isCharged) =>
    expect(chargesForRuns(engine)).toBe(isCharged),
  )

  it('counts as unknown for a paid server without the map, and as none for a free one', () => {
    expect(read({ engine: FAL })?.document.cost).toBe('unknown')
    expect(read({ engine: { type: 'preview' } })?.document.cost).toBeUndefined()
    expect(
      read({ engine: { type: 'preview' }, cost: { run: 0, currency: 'USD' } })?.document.cost,
    ).toBeDefined()
  })

  it('counts on a node that renders nothing too', () => {
    const [model] = readModels({
      ...{ path: fileOf({ engine: FAL }), env: {} },
      ...{ types: ENGINE_TYPES, readsEngines: false },
    })
    expect(model?.document.cost).toBe('unknown')
  })
})

describe('a hosted engine', () => {
  /** What an engine would get. */
  function hostedOf(document: object, type: 'fal' | 'replicate' | 'cog' = 'fal') {
    let found: HostedModel | undefined
    const types = {
      [type]: readHosted(type, (model) => {
        found = model
        return { render: async () => [] }
      }),
    }
    const read = readModels({ path: fileOf(document), env: ENV, types })[0]
    read?.createEngine({} as EngineParts)
    const addresses = [found?.upstream.origin, found?.uploads.origin]
    return { model: found?.model, references: found?.references, addresses, secrets: read?.secrets }
  }
  const images = { image_urls: { type: 'array', items: { type: 'string' } } }

  it('has the address and the key of its provider', () => {
    const secrets = ['fal-secret', 'fal-secret']
    expect(hostedOf({ engine: FAL })).toEqual({
      model: 'fal-ai/flux/dev',
      references: undefined,
      addresses: ['https://queue.fal.run', 'https://rest.fal.ai'],
      secrets,
    })
    // The key of another address is not sent to the provider.
    const elsewhere = { ...FAL, url: 'http://127.0.0.1:9/v1' }
    const own = 'http://127.0.0.1:9'
    expect(hostedOf({ engine: elsewhere })).toMatchObject({ addresses: [own, own], secrets })
    const cog = { type: 'cog', url: own }
    expect(hostedOf({ engine: cog }, 'cog')).toMatchObject({ model: '', secrets: [] })
  })

  it.each([
    ['image_url', { field: 'image_url', isList: false }],
    [['images'], { field: 'images', isList: true }],
  ])('sends image_urls to the field of %j', (references, expected) =>
    expect(hostedOf({ engine: { ...FAL, references }, input: images }).references).toEqual(expected),
  )

  it.each([
    ['a missing key', { engine: FAL }, {}, 'engine needs the environment variable FAL_KEY, which is not set'],
    [
      'a missing variable',
      { engine: { ...FAL, key_env: 'OTHER' } },
      ENV,
      'engine: key_env names OTHER, which is not set in the environment. Set it to the key',
    ],
    [
      'a missing model',
      { engine: { type: 'fal' } },
      ENV,
      'engine: model must be an endpoint, such as fal-ai/flux/dev',
    ],
    [
      'another model',
      { engine: { type: 'replicate', model: 'a/b/c' } },
      ENV,
      'engine: model must be owner/name',
    ],
    [
      'no address of a Cog server',
      { engine: { type: 'cog' } },
      ENV,
      'engine: url is missing. Example: http://127.0.0.1:8000/v1',
    ],
    [
      'images without a field',
      { engine: FAL, input: images },
      ENV,
      'engine: references is missing: the field of the provider that gets image_urls',
    ],
    [
      'a field without images',
      { engine: { ...FAL, references: 'image' } },
      ENV,
      'engine: references needs the property image_urls in the input',
    ],
    [
      'two fields',
      { engine: { ...FAL, references: ['a', 'b'] }, input: images },
      ENV,
      'engine: references must be the name of a field, or a list of one name',
    ],
  ])('reports %s before the service listens', (_, document, env, problem) =>
    expect(problemsOf(document, env)).toBe(problem),
  )

  it('knows which runs may cost', async () => {
    const path = modelsFile(
      { name: 'a/fal', kind: 'video', engine: FAL, input: { image_urls: false } },
      { name: 'a/openai', kind: 'image', engine: { type: 'images', url: 'https://api.openai.com/v1' } },
      { name: 'a/local', kind: 'image', engine: { type: 'images', url: 'http://127.0.0.1:1/v1' } },
    )
    const { models } = await openModelSet({ path, env: ENV })
    expect(models.map(({ mayCost }) => mayCost)).toEqual([true, true, false])
  })
})
