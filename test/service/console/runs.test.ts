import { beforeAll, describe, expect, test } from 'vitest'
import { AUTH_PATHS, CONSOLE_PATHS, type RunSummary } from '../../../src/protocol/console.js'
import { PREVIEW_DOCUMENTS } from '../../../src/service/models/served-model.js'
import { FLUX, UPSCALE } from '../../console/models.js'
import {
  BOAT,
  type Browser,
  createBrowser,
  createByKey,
  createConsoleService,
  createInConsole,
  FOX,
  pathOf,
  refusal,
  signInByLink,
  withStore,
} from '../../support/console.js'
import { createFamilyEngine, createInstantEngine, ONE_PIXEL_PNG } from '../../support/engines.js'
import { newRun } from '../../support/runs.js'
import { ask, ended } from '../../support/service.js'
import { runSql } from '../../support/test-database.js'
import { until } from '../../support/until.js'

const PICTURE = { model: UPSCALE.name, input: { image_urls: ['https://e.test/a.png'], scale: 2 } }

const idsOf = (runs: readonly { id: string }[]) => runs.map(({ id }) => id)

test('the details of very large runs are sent in turns, and other requests are not delayed', async () => {
  const service = await createConsoleService()
  const browser = await signInByLink(service)
  const more = 'x'.repeat(1_000_000)
  await withStore(service, (store) =>
    store.addRun(newRun({ id: 'run_old', input: { ...FOX.input, more } }), () => {}),
  )
  let answers = 0
  const read = async () => {
    const answer = await browser.get(CONSOLE_PATHS.run.replace(':id', 'run_old'))
    answers++
    return answer
  }
  await Promise.all(Array.from({ length: 4 }, read))
  const waiting = read()
  for (let request = 0; request < 5; request++) await browser.get(CONSOLE_PATHS.credits)
  expect(answers).toBe(4)
  await service.clock.advance(1_000)
  expect((await waiting).body.input.more).toBe(more)
})

test('a user can cancel a run of the account, repeatedly with the same response', async () => {
  const service = await createConsoleService({ rendering: false })
  const browser = await signInByLink(service)
  const { id } = await createInConsole(browser)
  const cancel = (run: string) => browser.post(pathOf(CONSOLE_PATHS.cancel, run))
  const canceled = await cancel(id)
  expect(canceled).toMatchObject({
    status: 200,
    body: {
      id,
      status: 'canceled',
      is_refunded: true,
      error: { message: expect.stringContaining('was refunded') },
    },
  })
  expect((await cancel(id)).body).toEqual(canceled.body)
  expect((await browser.get(`${CONSOLE_PATHS.runs}?status=canceled`)).body.runs).toMatchObject([{ id }])
  expect(await cancel('run_none')).toMatchObject(refusal(404, 'run_not_found'))
})

describe('the runs of the console', () => {
  test('a create is checked as in the API, charged to the account, and has no key', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const answer = await browser.post(CONSOLE_PATHS.runs, BOAT)
    expect([answer.status, answer.header('location')]).toEqual([
      201,
      `${service.baseUrl}/api/v1/runs/${answer.body.id}`,
    ])
    expect(answer.body).toMatchObject({
      kind: 'video',
      status: 'queued',
      prompt: 'a boat',
      aspect_ratio: '9:16',
      key: null,
      price: 10,
      outputs: [],
      input: BOAT.input,
      crashes: 0,
      is_refunded: false,
      service: { id: answer.body.id, status: 'queued', output: null },
    })
    expect((await browser.get(CONSOLE_PATHS.credits)).body.balance).toBe(9_990)
    for (const [body, status, code] of [
      ['{', 400, 'invalid_json'],
      [{ ...FOX, input: { prompt: 'x', more: 'x'.repeat(263_000) } }, 400, 'invalid_input'],
      [{}, 400, 'missing_model'],
      [{ model: 'acme/none', input: {} }, 400, 'model_not_found'],
      [{ ...FOX, input: { prompt: 'x', quality: 'hihg' } }, 400, 'invalid_input'],
      [{ ...FOX, input: { prompt: 'x', image_urls: ['data:image/png;base64,?'] } }, 400, 'invalid_input'],
    ] as const)
      expect(await browser.post(CONSOLE_PATHS.runs, body)).toMatchObject(refusal(status, code))
    expect((await browser.get(CONSOLE_PATHS.credits)).body.balance).toBe(9_990)
  })

  test('a charged create gets its response even if the rest of the run cannot be read', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    await runSql(service, 'ALTER TABLE outputs RENAME TO unreadable')
    const answer = await browser.post(CONSOLE_PATHS.runs, BOAT)
    await runSql(service, 'ALTER TABLE unreadable RENAME TO outputs')
    expect(answer.status).toBe(201)
    expect((await browser.get(pathOf(CONSOLE_PATHS.run, answer.body.id))).body).toEqual(answer.body)
  })

  test('a run keeps the price that was charged, rounded up, when the model changes its price', async () => {
    const first = await createConsoleService({ models: [{ document: UPSCALE }] })
    const create = (browser: Browser, key: string) =>
      browser.ask('POST', CONSOLE_PATHS.runs, PICTURE, { 'idempotency-key': key })
    const created = await create(await signInByLink(first), 'one')
    expect(created.body).toMatchObject({ price: 1, prompt: '', aspect_ratio: null })
    await first.service.close()
    const { dataFolder, databaseUrl, clock } = first
    const document = { ...UPSCALE, price: undefined }
    const browser = await signInByLink(
      await createConsoleService({ dataFolder, databaseUrl, clock, models: [{ document }] }),
    )
    expect((await create(browser, 'one')).body).toEqual(created.body)
    expect((await create(browser, 'two')).body).toMatchObject({ price: 0 })
    const { runs } = (await browser.get(`${CONSOLE_PATHS.runs}?model=acme/upscale`)).body
    expect(runs.map(({ price }: RunSummary) => price)).toEqual([0, 1])
    expect((await browser.get(CONSOLE_PATHS.credits)).body.balance).toBe(9_999)
  })

  test('the models need a session, and are sent again only when they have changed', async () => {
    const { video } = PREVIEW_DOCUMENTS
    const models = [video, FLUX, UPSCALE].map((document) => ({ document }))
    const service = await createConsoleService({ models })
    expect(await createBrowser(service).get(CONSOLE_PATHS.models)).toMatchObject(
      refusal(401, 'not_signed_in'),
    )
    const browser = await signInByLink(service)
    const { body, header } = await browser.get(CONSOLE_PATHS.models)
    expect(body).toEqual({ models: JSON.parse(JSON.stringify([FLUX, UPSCALE, video])) })
    expect(header('cache-control')).toBe('private, no-cache')
    const tag = { 'if-none-match': String(header('etag')) }
    expect(await browser.ask('GET', CONSOLE_PATHS.models, undefined, tag)).toMatchObject({
      ...{ status: 304, body: '' },
    })
    expect((await browser.get(AUTH_PATHS.session)).body.models).toMatchObject({ image: 'acme/flux' })
  })

  test('a create above the balance is 402, and charges nothing', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service, 'poor@example.com', 'poor')
    const taken = { account: 'poor', amount: -9_999, nowMs: 0 }
    await withStore(service, (store) => store.addCredits(taken, () => {}))
    expect(await browser.post(CONSOLE_PATHS.runs, BOAT)).toMatchObject(refusal(402, 'insufficient_balance'))
    expect((await browser.post(CONSOLE_PATHS.runs, FOX)).status).toBe(201)
    expect((await browser.get(CONSOLE_PATHS.credits)).body.balance).toBe(0)
  })

  test('a body over the limit is 413; a failed run with an image is refunded', async () => {
    const engine = createFamilyEngine()
    const service = await createConsoleService({ bodyLimitBytes: 100_000, rendering: true, engine })
    const browser = await signInByLink(service)
    const image_urls = [`data:image/png;base64,${ONE_PIXEL_PNG.toString('base64')}`]
    const { id, input } = await createInConsole(browser, { ...FOX, input: { prompt: 'FAIL', image_urls } })
    expect(input.image_urls).toEqual([{ sha256: expect.any(String), bytes: 70, content_type: 'image/png' }])
    const large = { ...FOX, input: { prompt: 'x'.repeat(100_000) } }
    expect(await browser.post(CONSOLE_PATHS.runs, large)).toMatchObject(refusal(413, 'payload_too_large'))
    await ended(service, id)
    const details = (await browser.get(pathOf(CONSOLE_PATHS.run, id))).body
    expect(details).toMatchObject({
      status: 'failed',
      error: { code: 'render_failed' },
      outputs: [],
      is_refunded: true,
    })
    expect((await browser.get(CONSOLE_PATHS.credits)).body).toMatchObject({
      balance: 10_000,
      entries: [
        { kind: 'refund', amount: 1, run_id: id, key: null },
        { kind: 'charge', amount: -1, run_id: id },
        { kind: 'added', amount: 10_000, run_id: null },
      ],
    })
  })

  test('a run that this process renders shows its progress and queue position until it ends', async () => {
    const instant = createInstantEngine()
    let end = () => {}
    const service = await createConsoleService({
      rendering: true,
      engine: {
        async render(job) {
          job.onProgress?.(0.4)
          job.onPosition?.(12_000)
          await new Promise<void>((resolve) => {
            end = resolve
          })
          return await instant.render(job)
        },
      },
    })
    const browser = await signInByLink(service)
    const { id, progress } = await createInConsole(browser, FOX)
    const details = async () => (await browser.get(pathOf(CONSOLE_PATHS.run, id))).body
    await until('the progress', async () => (await details()).progress === 0.4)
    const [listed] = (await browser.get(CONSOLE_PATHS.runs)).body.runs
    expect([progress, listed.status, listed.progress, listed.queue_position]).toEqual([
      ...[null, 'processing', 0.4, 12_000],
    ])
    expect((await ask(service, 'GET', `/api/v1/runs/${id}`)).body).toMatchObject({
      ...{ status: 'processing', progress: 0.4, queue_position: 12_000 },
    })
    end()
    await ended(service, id)
    expect(Object.keys((await ask(service, 'GET', `/api/v1/runs/${id}`)).body)).toEqual([
      ...['id', 'model', 'status', 'input', 'output', 'error', 'created_at', 'started_at', 'finished_at'],
    ])
    expect(await details()).toMatchObject({ status: 'succeeded', progress: null, queue_position: null })
  })

  test('the list has pages, newest first, with changes of named runs and the balance', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const ids = (await createByKey(service, 7)).reverse()
    const page = async (query: string) => (await browser.get(`${CONSOLE_PATHS.runs}?${query}`)).body
    const first = await page('limit=3')
    const second = await page(`limit=3&before=${first.next}`)
    const third = await page(`limit=3&before=${second.next}`)
    expect([first, second, third].map(({ runs }) => idsOf(runs))).toEqual([
      ids.slice(0, 3),
      ids.slice(3, 6),
      ids.slice(6),
    ])
    expect([first.next !== null, second.next !== null, third.next]).toEqual([true, true, null])
    expect((await page('limit=7')).next).toBeNull()
    expect(first.runs[0]).toMatchObject({ key: { id: 1, name: 'first' }, price: 1, aspect_ratio: '1:1' })

    expect([first.changed, first.balance]).toEqual([[], 9_993])
    const { id } = await createInConsole(browser)
    const more = await page(`limit=1&ids=${ids[0]},run_none,${ids[6]}`)
    expect(idsOf(more.runs)).toEqual([id])
    expect(idsOf(more.changed).sort()).toEqual([ids[0], ids[6]].sort())
    expect(more.balance).toBe(9_992)
  })

  test('the list can be filtered by status, kind, model, key and search', async () => {
    const service = await createConsoleService({ rendering: true, engine: createInstantEngine() })
    const browser = await signInByLink(service)
    const [image = ''] = await createByKey(service, 1)
    await ended(service, image)
    const { id: video } = await createInConsole(browser, {
      ...BOAT,
      input: { prompt: 'Ein BOOT im Hafen, 100%' },
    })
    const found = async (query: string) =>
      idsOf((await browser.get(`${CONSOLE_PATHS.runs}?${query}`)).body.runs)
    for (const [query, ids] of [
      ['', [video, image]],
      ['status=&kind=&model=&key=&search=&before=&limit=', [video, image]],
      ['kind=image', [image]],
      ['model=rushes/preview-video', [video]],
      ['key=console', [video]],
      ['key=1', [image]],
      ['key=99', []],
      ['status=succeeded&kind=image', [image]],
      ['search=boot', [video]],
      ['search=100%25', [video]],
      ['search=_', []],
      ['search=fox&kind=video', []],
    ] as const)
      expect([query, await found(query)]).toEqual([query, ids])
  })

  test('a prompt is cut to 500 whole characters', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const prompt = `${'x'.repeat(499)}🦊🦊`
    const { id } = await createInConsole(browser, { ...FOX, input: { prompt } })
    const details = (await browser.get(pathOf(CONSOLE_PATHS.run, id))).body
    expect([details.prompt, details.input.prompt]).toEqual([`${'x'.repeat(499)}🦊`, prompt])
  })
})

describe('a query', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await signInByLink(await createConsoleService())
  })

  test.each([
    [CONSOLE_PATHS.runs, 'limit=0', /limit: "0" is not a whole number from 1 to 100/],
    [CONSOLE_PATHS.runs, 'limit=101', /limit/],
    [CONSOLE_PATHS.runs, 'limit=1.5', /limit/],
    [CONSOLE_PATHS.runs, 'limit=1&limit=2', /limit is given more than once/],
    [CONSOLE_PATHS.runs, 'before=x', /before/],
    [CONSOLE_PATHS.runs, 'before=-1', /before/],
    [CONSOLE_PATHS.runs, 'before=99999999999999999999', /before/],
    [CONSOLE_PATHS.runs, 'status=done', /status: "done" is not one of queued, processing, succeeded, failed/],
    [CONSOLE_PATHS.runs, 'kind=toString', /kind/],
    [CONSOLE_PATHS.runs, 'key=mine', /key/],
    [CONSOLE_PATHS.runs, `search=${'x'.repeat(1_001)}`, /search has more than 1000/],
    [CONSOLE_PATHS.runs, `ids=${'x,'.repeat(100)}x`, /ids has more than 100/],
    [CONSOLE_PATHS.credits, 'limit=101', /limit/],
    [CONSOLE_PATHS.keys, 'before=x', /before/],
    [CONSOLE_PATHS.credits, 'kind=gift', /kind: "gift" is not one of added, charge, refund/],
    [CONSOLE_PATHS.credits, 'from=2026-02-30', /from: "2026-02-30" is not a day/],
    [CONSOLE_PATHS.credits, 'to=yesterday', /to: "yesterday" is not a day/],
    [CONSOLE_PATHS.csv, 'to=yesterday', /to: "yesterday" is not a day/],
    [CONSOLE_PATHS.spend, 'days=0', /days/],
    [CONSOLE_PATHS.spend, 'days=367', /days/],
  ])('%s?%s is refused', async (path, query, says) => {
    const { status, body } = await browser.get(`${path}?${query}`)
    expect([status, body.error.code]).toEqual([400, 'invalid_input'])
    expect(body.error.message).toMatch(says)
  })
})
