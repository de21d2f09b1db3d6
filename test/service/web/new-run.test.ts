/** The form of a new run: its fields, references, price, and what is created by it. */
import { describe, expect, test } from 'vitest'
import { builtInSchema, type ModelDocument } from '../../../src/protocol/models.js'
import {
  BOAT,
  type Browser,
  createInConsole,
  hiddenField,
  signedIn,
  submitRun,
  withStore,
  wordsOf,
} from '../../support/console.js'
import {
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
  expect(wordsOf(page)).toMatch(/Duration 5 s 10 s .*5 credits/)
  expect(await browser.words('/new')).toMatch(/Quality basic high .*1 credit/)
  const other = await browser.submit('/new/form', {
    model: 'rushes/preview-video',
    prompt: 'kept',
    form_key: 'k',
  })
  expect(other.body).toContain('kept</textarea>')
  expect(hiddenField(other, 'form_key')).toBe('k')
})

test('with another model, its own defaults are chosen', async () => {
  const { browser } = await signedIn()
  const { body } = await browser.submit('/new/form', { model: BOAT.model, aspect_ratio: '3:4' })
  const [, chosen] = /name="aspect_ratio" value(?:="([^"]*)")? checked/.exec(body) ?? ['', 'none']
  expect(chosen ?? '').toBe('')
})

test('the price follows the fields, without the files', async () => {
  const { browser } = await signedIn()
  const priceOf = async (fields: Record<string, string>) => {
    const answer = await browser.submit('/new/price', { model: FOX.model, ...fields })
    expect(answer.body).toMatch(/^<output id="price"/)
    return wordsOf(answer).trim()
  }
  expect(await priceOf({ quality: 'high' })).toBe('2 credits')
  expect(await priceOf({ quality: 'none' })).toBe('1 credit')
})

/** Sends a form that is refused. Returns the page. */
async function refused(browser: Browser, fields: Parameters<typeof submitRun>[1]) {
  const answer = await submitRun(browser, fields)
  expect(answer.status).toBe(422)
  return answer
}

describe('a form that is sent', () => {
  test('leads to its run', async () => {
    const { service, browser } = await signedIn()
    const fields = { prompt: 'a fox\r\nin snow', aspect_ratio: '3:2', quality: '', image_urls: '' }
    const id = await createInConsole(browser, fields)
    expect(await inputOf(service, id)).toEqual({
      prompt: 'a fox\nin snow',
      aspect_ratio: '3:2',
      seed: expect.any(Number),
    })
  })

  test('twice unchanged is one run; changed, it is another', async () => {
    const { service, browser } = await signedIn()
    const key = hiddenField(await browser.get('/new'), 'form_key')
    const send = (fields = {}) => createInConsole(browser, { form_key: key, ...fields })
    const [one, same] = await Promise.all([send(), send()])
    expect(same).toBe(one)
    expect(await send()).toBe(one)
    expect(await send({ prompt: 'a bear' })).not.toBe(one)
    expect(await createInConsole(browser)).not.toBe(one)
    expect(await runsOf(service)).toHaveLength(3)
    expect(await browser.words('/credits')).toContain('9,997 credits')
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
    expect(wordsOf(await refused(browser, { prompt: 'x'.repeat(100_001) }))).toContain('the limit is 100000')
    expect(await runsOf(service)).toEqual([])
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
  test('must be chosen again when the form is drawn again', async () => {
    const { service, browser } = await signedIn()
    const wrong = await refused(browser, { 'files.image_urls': PNG, quality: 'best' })
    expect(wordsOf(wrong)).toContain('Choose the files again.')
    expect(await runsOf(service)).toEqual([])
  })

  test('can be files and URLs; the page of the run shows them', async () => {
    const { service, browser } = await signedIn()
    const url = 'https://example.com/a.png'
    const id = await createInConsole(browser, { 'files.image_urls': PNG, image_urls: url })
    expect((await inputOf(service, id)).image_urls).toMatchObject([{ bytes: ONE_PIXEL_PNG.length }, url])
    const sent = `/runs/${id}/references/0`
    const page = await browser.get(`/runs/${id}`)
    expect(page.body).toContain(`<img class="sent" src="${sent}"`)
    expect(page.body).toContain(`>${url}<`)
    expect((await browser.get(sent)).header('content-type')).toBe('image/png')
  })

  test('with a wrong URL are refused at their field', async () => {
    const { browser } = await signedIn()
    const { body } = await refused(browser, { image_urls: 'https://example.com/a.png\nfox.png' })
    expect(body).toContain('aria-invalid="true" aria-describedby="problem-f-image_urls"')
    expect(body).toMatch(
      /id="problem-f-image_urls"[^>]*>[^<]* input\.image_urls\/1 is not an http\(s\) or data: URL/,
    )
  })

  test('that are no images are refused', async () => {
    const { browser } = await signedIn()
    const svg = new File(['<svg/>'], 'x.svg', { type: 'image/png' })
    expect(wordsOf(await refused(browser, { 'files.image_urls': svg }))).toMatch(
      /x\.svg is not a PNG.* image\. Choose the files again\./,
    )
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

  test('have a field each, for a file or a URL, which is checked by its content', async () => {
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
    const wrong = await refused(browser, { ...fields, 'files.song_url': PNG })
    expect(wordsOf(wrong)).toMatch(/Choose the files again\.[\s\S]*fox\.png is not an MP3/)
  })
})
