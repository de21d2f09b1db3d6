/** What a provider says that it charged: from its answer to `show`, `spend` and the run object. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ask, createLocalHome, createTestService, ended, lines, objects, outputOf } from '../support/index.js'
import { openModels } from '../support/model-servers/engine.js'
import { SECRET } from '../support/model-servers/fal.js'
import { createOpenRouterServer, type OpenRouterOptions } from '../support/model-servers/openrouter.js'

const env = { OPENROUTER_API_KEY: SECRET }

/** A home with a film, whose estimate is 1.00 USD, and a picture without a price, behind a simulated OpenRouter. */
async function createPlace(options: OpenRouterOptions = {}, price?: object) {
  const server = await createOpenRouterServer(options)
  const { run, clock, file } = createLocalHome(env)
  const models = file('models')
  mkdirSync(models)
  const modelOf = (name: string, kind: string, more: object = {}) => {
    const engine = { type: 'openrouter', url: server.url, model: name }
    const input = { type: 'object', properties: { prompt: { type: 'string' } } }
    writeFileSync(join(models, `${kind}.yaml`), JSON.stringify({ name, kind, engine, input, ...more }))
  }
  modelOf('acme/film', 'video', { cost: { run: 1, currency: 'USD' } })
  modelOf('acme/still', 'image', price && { price })
  outputOf(await run(`config set local.models ${models}`))
  const make = (kind: string, model: string) =>
    clock.runUntil(run(`run ${kind} --local --model ${model} "a fox" -o ${file(`${kind}.bin`)}`))
  return { run, make, clock, models }
}

it('show prints what a provider charged for a film or a picture, and spend counts it in place of the estimate', async () => {
  const { run, make } = await createPlace()
  outputOf(await make('video', 'acme/film'))
  const film = await run('show --last --local')
  expect(film.stdout).toMatch(/^estimate\t1 USD$/m)
  expect(film.stdout).toMatch(/^cost\t1\.6 USD$/m)
  outputOf(await make('image', 'acme/still'))
  const [picture] = objects(outputOf(await run('list --json')))
  expect(picture).toMatchObject({ estimate: null, cost: { amount: 0.04, currency: 'USD' } })
  expect(lines(outputOf(await run('spend')))).toEqual([
    'model\tacme/film\t1\t0\tUSD\t1.6\t0\t0\t0',
    'model\tacme/still\t1\t0\tUSD\t0.04\t0\t0\t0',
    'total\t\t2\t0\tUSD\t1.64\t0\t0\t0',
  ])
})

it('spend counts what a provider charged for a film that failed', async () => {
  const { run, make } = await createPlace({ states: ['pending', 'failed'], error: 'content policy' })
  expect(await make('video', 'acme/film')).toMatchObject({ code: 10 })
  expect(outputOf(await run('spend'))).toContain('total\t\t1\t0\tUSD\t0\t1.6\t0\t0')
})

it.each([
  ['has what its provider charged', undefined, { amount: 0.04, currency: 'USD' }],
  ['with a price does not have what its provider charged', { run: 7 }, undefined],
])('the object of a run %s', async (_, price, cost) => {
  const { models, clock } = await createPlace({}, price)
  const opened = await openModels({ path: join(models, 'image.yaml') }, { clock, env })
  const service = await createTestService({ ...opened, clock })
  const create = { model: 'acme/still', input: { prompt: 'a fox' } }
  const { id } = (await ask(service, 'POST', '/api/v1/runs', create)).body
  const run = await ended(service, id)
  expect([run.status, run.cost]).toEqual(['succeeded', cost])
})
