/** The form of a new run: its fields, references, price, and what is created by it. */
import { describe, expect, test } from 'vitest'
import { builtInSchema, type ModelDocument } from '../../../src/protocol/models.js'
import {
  BOAT,
  type Browser,
  createInConsole,
  hiddenField,
  leadsTo,
  signedIn,
  submitRun,
  withStore,
  wordsOf,
} from '../../support/console.js'
import {
  ask,
  createInstantEngine,
  ended,
  FOX,
  ONE_PIXEL_PNG,
  runOf,
  type TestService,
} from '../../support/index.js'
import { runSql } from '../../support/test-database.js'

const PNG = new File([ONE_PIXEL_PNG], 'fox.png', { type: 'image/png' })

const runsOf = (service: TestService) =>
  withStore(service, async (store) => (await store.listRuns({ accountId: 1, limit: 100 })).runs)

const inputOf = async (service: TestService, id: string) => (await runOf(service, id)).input

test('the form has the fields of the model, seconds after durations, and the price with its unit', async () => {
  const { browser } = await signedIn()
  const page = await browser.get('/new?model=rushes/preview-video')
  expect(wordsOf(page)).toMatch(/Duration 5 s 10 s .*5 credits of 10,000 credits/)
  expect(await browser.words('/new')).toMatch(/Quality basic high .*1 credit of 10,000 credits/)
  const other = await browser.submit('/new/form', {
    model: 'rushes/preview-video',
    prompt: 'kept',
    form_key: 'k',
  })
  expect(other.body).toContain('kept</textarea>')
  expect(hiddenField(other, 'form_key')).toBe('k')
})

test.each([
  ['', ''],
  ['2:3', ''],
  ['3:4', '3:4'],
])(
  'with another model, the ratio "%s" of an image becomes "%s"; the default is empty',
  async (aspect_ratio, expected) => {
    const { browser } = await signedIn()
    const { body } = await browser.submit('/new/form', { model: BOAT.model, aspect_ratio })
    const [, chosen] = /name="aspect_ratio" value(?:="([^"]*)")? checked/.exec(body) ?? ['', 'none']
    expect(chosen ?? '').toBe(expected)
  },
)

test('the price follows the fields and the number of runs, without the files', async () => {
  const { browser } = await signedIn()
  const priceOf = async (fields: Record<string, string>) => {
    const answer = await browser.submit('/new/price', { model: FOX.model, ...fields })
    expect(answer.body).toMatch(/^<output id="price"/)
    return wordsOf(answer).trim()
  }
  expect(await priceOf({ quality: 'high', count: '3' })).toBe('6 credits for 3 runs of 10,000 credits')
  expect(await priceOf({ quality: 'none', count: 'x' })).toBe('1 credit of 10,000 credits')
})

/** Sends a form that is refused. Returns the page. */
async function refused(browser: Browser, fields: Parameters<typeof submitRun>[1]) {
  const answer = await submitRun(browser, fields)
  expect(answer.status).toBe(422)
  return answer
}

describe('a form that is sent', () => {
  test('leads to its run; several go to the list', async () => {
    const { service, browser } = await signedIn()
    const fields = { prompt: 'a fox\r\nin snow', aspect_ratio: '3:2', quality: '', image_urls: '' }
    const id = await createInConsole(browser, fields)
    expect(await inputOf(service, id)).toEqual({
      prompt: 'a fox\nin snow',
      aspect_ratio: '3:2',
      seed: expect.any(Number),
    })
    const several = await submitRun(browser, { count: '3' })
    expect(leadsTo(several)).toBe('/runs')
    expect(await runsOf(service)).toHaveLength(4)
  })

  test('twice unchanged is one run; changed, or with another number of runs, it is another', async () => {
    const { service, browser } = await signedIn()
    const key = hiddenField(await browser.get('/new'), 'form_key')
    const send = (fields = {}) => createInConsole(browser, { form_key: key, ...fields })
    const [one, same] = await Promise.all([send(), send()])
    expect(same).toBe(one)
    expect(await send()).toBe(one)
    expect(await send({ prompt: 'a bear' })).not.toBe(one)
    expect(await createInConsole(browser)).not.toBe(one)
    await submitRun(browser, { form_key: key, count: '2' })
    await submitRun(browser, { form_key: key, count: '2' })
    expect(await runsOf(service)).toHaveLength(5)
    const ledger = await browser.get('/credits')
    expect(ledger.body).toContain('<strong id="balance">9,995<')
  })

  test('keeps no key of its own length with its run', async () => {
    const { service, browser } = await signedIn()
    const send = () => createInConsole(browser, { form_key: 'k'.repeat(100_000) })
    expect(await send()).toBe(await send())
    const [row] = await runSql(service, 'SELECT max(length(idempotency_key)) AS length FROM runs')
    expect(Number(row?.length)).toBeLessThan(256)
  })

  test('is drawn again with 422 and its texts, where a field is wrong', async () => {
    const { service, browser } = await signedIn()
    const wrong = await refused(browser, { prompt: '<b>kept</b>', quality: 'best', form_key: 'mine' })
    expect(wordsOf(wrong)).toMatch(/Nothing was created.* Must be one of basic, high/)
    expect(wrong.body).toContain('&lt;b>kept&lt;/b></textarea>')
    expect(hiddenField(wrong, 'form_key')).toBe('mine')
    expect((await refused(browser, { prompt: '  ' })).body).toContain('aria-invalid')
    expect(wordsOf(await refused(browser, { count: '21' }))).toContain('must be from 1 to 20')
    expect(wordsOf(await refused(browser, { prompt: 'x'.repeat(100_001) }))).toContain('the limit is 100000')
    expect(await runsOf(service)).toEqual([])
  })

  test('says how many of several runs the balance was enough for, and pays each once', async () => {
    const { service, browser } = await signedIn()
    await withStore(service, (store) =>
      store.addCredits({ account: 'default', amount: -9_997, nowMs: 0 }, () => {}),
    )
    const send = () => submitRun(browser, { count: '5', form_key: 'k' })
    expect(wordsOf(await send())).toContain('3 of 5 runs were created.')
    expect(wordsOf(await send())).toContain('3 of 5 runs were created.')
    expect(await runsOf(service)).toHaveLength(3)
  })

  test.each([
    ['multipart/form-data', 400],
    ['application/json', 400],
  ])('as %s without a form is refused', async (type, status) => {
    const { browser } = await signedIn()
    expect((await browser.ask('POST', '/runs', 'x', { 'content-type': type })).status).toBe(status)
  })
})

test('the default of a required parameter is sent, as it is shown', async () => {
  const style = { type: 'string', description: '', enum: ['ink', 'oil'], default: 'ink' } as const
  const { properties } = builtInSchema('image')
  const input = {
    ...builtInSchema('image'),
    required: ['prompt', 'style'],
    properties: { ...properties, style },
  }
  const { service, browser } = await signedIn({
    models: [{ document: { name: 'acme/still', kind: 'image', input } }],
  })
  const { body } = await browser.get('/new?model=acme/still')
  const [, chosen] = /name="style" value(?:="([^"]*)")? checked/.exec(body) ?? []
  const id = await createInConsole(browser, { model: 'acme/still', style: chosen ?? '' })
  expect((await inputOf(service, id)).style).toBe('ink')
})

describe('reference images', () => {
  test('must be chosen again when the form is drawn again; a reference that is gone is refused', async () => {
    const { service, browser } = await signedIn()
    const wrong = await refused(browser, { 'files.image_urls': PNG, quality: 'best' })
    expect(wordsOf(wrong)).toContain('Choose the files again.')
    const gone = await refused(browser, { 'reference.image_urls': '/runs/run_none/references/0' })
    expect(wordsOf(gone)).toContain('No run with this id')
    expect(await runsOf(service)).toEqual([])
  })

  test('can be files, URLs and outputs of earlier runs; an earlier run fills in the form', async () => {
    const { service, browser } = await signedIn({ rendering: true, engine: createInstantEngine() })
    const first = await createInConsole(browser, {
      'files.image_urls': PNG,
      image_urls: 'https://example.com/a.png',
    })
    const { output } = await ended(service, first)
    const page = await browser.get(`/runs/${first}`)
    const use = /href="(\/new\?reference=[^"]*)"/.exec(page.body)?.[1] ?? ''
    const reference =
      /name="reference\.image_urls" value="([^"]*)"/.exec((await browser.get(use)).body)?.[1] ?? ''
    const second = await createInConsole(browser, {
      'reference.image_urls': reference,
      prompt: 'two',
      seed: '',
    })
    expect((await inputOf(service, second)).image_urls).toEqual([output.urls[0]])

    const again = await browser.get(`/new?from=${first}`)
    const sent = `/runs/${first}/references/0`
    expect(again.body).toContain(`<img src="${sent}"`)
    expect(again.body).toContain('https://example.com/a.png</textarea>')
    expect((await browser.get(sent)).header('content-type')).toBe('image/png')
    const third = await createInConsole(browser, { 'reference.image_urls': sent, prompt: 'three' })
    expect((await inputOf(service, third)).image_urls).toMatchObject([{ bytes: ONE_PIXEL_PNG.length }])
    const fourth = await browser.get(`/new?from=${second}`)
    expect(fourth.body).toContain(`value="${reference}"`)
  })

  test('of earlier runs are refused where they are larger together than a form can be', async () => {
    const { service, browser } = await signedIn({ bodyLimitBytes: 6_000 })
    const picture = new File([ONE_PIXEL_PNG, Buffer.alloc(2_000)], 'a.png')
    const first = await createInConsole(browser, { 'files.image_urls': picture })
    const named = (times: number) => ({
      'reference.image_urls': Array.from({ length: times }, () => `/runs/${first}/references/0`),
    })
    const second = await createInConsole(browser, named(2))
    expect((await inputOf(service, second)).image_urls).toHaveLength(2)
    expect(wordsOf(await refused(browser, named(3)))).toContain('The references are too large together.')
  })

  test('that are no images, or names of other places, are refused or ignored', async () => {
    const { service, browser } = await signedIn()
    const svg = new File(['<svg/>'], 'x.svg', { type: 'image/png' })
    expect(wordsOf(await refused(browser, { 'files.image_urls': svg }))).toContain('x.svg is not a PNG')
    for (const reference of ['https://evil.example/x.png', '/../../etc/passwd', '/keys']) {
      const id = await createInConsole(browser, { 'reference.image_urls': reference, prompt: reference })
      expect(await inputOf(service, id)).not.toHaveProperty('image_urls')
    }
  })
})

describe('further media parameters', () => {
  const text = { type: 'string', description: '' } as const
  const document = {
    ...{ name: 'acme/film', kind: 'image' },
    input: {
      ...{ type: 'object', title: 'image', description: '', required: ['prompt'] },
      properties: {
        prompt: text,
        image_urls: builtInSchema('image').properties.image_urls,
        mask: text,
        song_url: text,
      },
    },
  } as ModelDocument

  test('have a field each, for a file or a URL, which is checked by its content and filled in again', async () => {
    const engine = createInstantEngine()
    const { service, browser } = await signedIn({ models: [{ document }], rendering: true, engine })
    const page = await browser.get('/new')
    expect(page.body).toContain('name="files.mask"')
    expect(page.body).toContain('name="files.song_url"')
    const fields = { model: 'acme/film', 'files.mask': PNG, song_url: 'https://example.com/a.mp3' }
    const id = await createInConsole(browser, { ...fields, 'files.image_urls': PNG })
    expect(await inputOf(service, id)).toMatchObject({
      image_urls: [{ content_type: 'image/png' }],
      mask: { content_type: 'image/png', bytes: ONE_PIXEL_PNG.length },
      song_url: 'https://example.com/a.mp3',
    })
    await ended(service, id)
    expect(engine.jobs[0]?.media?.mask).toEqual([expect.any(String)])
    const shown = await browser.get(`/runs/${id}`)
    expect(shown.body).toContain(`/runs/${id}/references/1`)
    const again = await browser.get(`/new?from=${id}`)
    expect(again.body).toContain(`name="reference.mask" value="/runs/${id}/references/1"`)
    expect(again.body).toContain('https://example.com/a.mp3</textarea>')

    const wrong = await refused(browser, { ...fields, 'files.song_url': PNG })
    expect(wordsOf(wrong)).toMatch(/Choose the files again\.[\s\S]*fox\.png is not an MP3/)
  })
})

test('a run again with changes says which of its parameters the form has no field for', async () => {
  const prompt = { type: 'string', description: '' }
  const camera = { type: 'other', description: '', json: { type: 'object' } }
  const schema = { type: 'object', title: 'image', description: '', required: ['prompt'] }
  const input = { ...schema, properties: { prompt, camera } }
  const document = { name: 'acme/still', kind: 'image', input } as ModelDocument
  const { service, browser } = await signedIn({ models: [{ document }] })
  const { body } = await ask(service, 'POST', '/api/v1/runs', {
    model: document.name,
    input: { prompt: 'a fox', camera: { zoom: 2 } },
  })
  const again = await browser.get(`/new?from=${body.id}`)
  expect(wordsOf(again)).toContain('This form has no field for camera: the new run is without it.')
  const form = { model: document.name, form_key: 'k', count: '99' }
  for (const page of [await browser.get('/new'), await submitRun(browser, form)])
    expect(wordsOf(page)).not.toContain('has no field')
})
