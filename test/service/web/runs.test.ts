/** The pages of the runs, as a browser without a script gets them, and their live parts. */
import { describe, expect, test } from 'vitest'
import { createLocalFiles } from '../../../src/service/files/local-files.js'
import {
  BOAT,
  createBrowser,
  createByKey,
  createConsoleService,
  createInConsole,
  leadsTo,
  load,
  signedIn,
  signInByLink,
  submitRun,
  withStore,
  wordsOf,
} from '../../support/console.js'
import {
  createCommandedEngine,
  created,
  createInstantEngine,
  createManualClock,
  ended,
  FOX,
  ONE_PIXEL_URL,
  temporaryFolder,
  until,
} from '../../support/index.js'
import { dial, isWhole } from '../../support/line.js'

const rows = (body: string): readonly string[] =>
  [...body.matchAll(/<(?:tr|li) id="(run_\w+)"/g)].map(([, id = '']) => id)

/** The path with the hidden fields of a page, as htmx sends them. */
function livePath(body: string): string {
  const path = /hx-get="(\/runs\/live[^"]*)"/.exec(body)?.[1]?.replaceAll('&amp;', '&') ?? ''
  const fields = [...body.matchAll(/<input type="hidden" name="at" value="([^"]*)"/g)]
  const query = new URLSearchParams(fields.map(([, value = '']) => ['at', value]))
  return `${path}${path.includes('?') ? '&' : '?'}${query}`
}

const PAGES = ['/runs', '/new', '/keys', '/keys/new', '/credits', '/account']

const rendering = () => createConsoleService({ rendering: true, engine: createInstantEngine() })

describe('the list', () => {
  test('shows runs newest first, as a list or a grid', async () => {
    const { service, browser } = await signedIn()
    expect(await browser.words('/runs')).toContain('No runs yet.')
    const [one = '', two = ''] = await createByKey(service, 2)
    const three = await createInConsole(browser, { prompt: '<script>alert(1)</script> \u202egnp' })
    const list = await browser.get('/runs')
    expect(rows(list.body)).toEqual([three, two, one])
    expect(list.body).toContain('&lt;script>alert(1)&lt;/script>')
    expect(list.body).toContain('<bdi>')
    expect(wordsOf(list)).toContain('rushes/preview-image')
    const grid = await browser.get('/runs?view=grid')
    expect([rows(grid.body).length, grid.body.includes('class="tiles"')]).toEqual([3, true])
  })

  test('is filtered by its URL', async () => {
    const { service, browser } = await signedIn()
    const [fox = ''] = await createByKey(service, 1)
    const [boat = ''] = await createByKey(service, 1, undefined, BOAT)
    const mine = await createInConsole(browser, { prompt: 'a Whale' })
    await browser.submit(`/runs/${mine}/cancel`)
    const found = async (query: string) => rows((await browser.get(`/runs?${query}`)).body)
    expect(await found('status=queued')).toEqual([boat, fox])
    expect(await found('model=rushes/preview-video')).toEqual([boat])
    expect(await found('model=a%00')).toEqual([])
    expect(await found('key=1')).toEqual([boat, fox])
    expect(await found('search=whale&status=canceled')).toEqual([mine])
    expect(await browser.words('/runs?search=zebra')).toContain('No runs match.')
    expect(await found('search=fox&status=&model=&key=')).toEqual([fox])
    expect((await browser.get('/runs?status=gone')).status).toBe(400)
  })

  test('has a link to older runs, which a script follows on scrolling', async () => {
    const { service, browser } = await signedIn()
    const ids = (await createByKey(service, 49)).reverse()
    const seen: string[] = []
    let path: string | undefined = '/runs'
    while (path !== undefined) {
      const { body } = await browser.get(path)
      // Runs that come meanwhile move none to another page.
      await createByKey(service, 1)
      seen.push(...rows(body))
      const older = /class="button" href="(\/runs\?[^"]*before=\d+)" hx-get="([^"]*)"/.exec(body)
      expect(older?.[1]).toBe(older?.[2])
      path = older?.[1]?.replaceAll('&amp;', '&')
    }
    expect(seen).toEqual(ids)
  })

  test('shows no run, key or file of another account', async () => {
    const service = await rendering()
    const owner = await signInByLink(service, 'ann@example.com', 'acme')
    const id = await createInConsole(owner, { prompt: 'a secret' })
    const stranger = await signInByLink(service, 'eve@example.com', 'other')
    for (const path of [
      `/runs/${id}`,
      `/runs/${id}/state`,
      `/runs/${id}/thumbnail`,
      `/runs/${id}/references/0`,
    ])
      expect([path, (await stranger.get(path)).status]).toEqual([path, 404])
    await stranger.submit(`/runs/${id}/cancel`)
    expect((await stranger.get(`/runs/live?at=${id}.x`)).body).not.toContain('secret')
    expect(rows((await stranger.get('/runs')).body)).toEqual([])
    expect(await owner.words(`/runs/${id}`)).toContain('queued')
  })
})

test('one poll for all rows is 204 until something changed, then has the changed rows', async () => {
  const { service, browser } = await signedIn()
  const id = await createInConsole(browser)
  const [other] = await createByKey(service, 1)
  const path = livePath((await browser.get('/runs')).body)
  expect(path).toContain(`at=${id}.`)
  expect(path).toContain(`at=${other}.`)
  const calm = await browser.get(path)
  expect([calm.status, calm.body]).toEqual([204, ''])
  await browser.submit(`/runs/${id}/cancel`)
  const { status, body: parts } = await browser.get(path)
  expect(status).toBe(200)
  expect(rows(parts)).toEqual([id])
  expect(parts).toContain(`<hx-partial hx-target="#${id}" hx-swap="outerHTML">`)
  expect(parts).toContain('1 run ended.')
  // A run that has ended is asked for no longer.
  expect(parts).not.toContain(`value="${id}.`)
  expect((await browser.get('/runs/live')).status).toBe(204)
})

describe('one run', () => {
  test('has its output, its fields, and commands; its part is 204 until it changes', async () => {
    const { service, browser } = await signedIn()
    const id = await createInConsole(browser, { prompt: 'a fox', aspect_ratio: '3:2' })
    const before = await browser.get(`/runs/${id}`)
    const part = /hx-get="(\/runs\/[^"]*)"/.exec(before.body)?.[1] ?? ''
    expect((await browser.get(part)).status).toBe(204)
    service.service.startRendering()
    await ended(service, id)
    const changed = await browser.get(part)
    expect(changed.body).toContain('The run is now succeeded.')
    expect(changed.body).not.toContain('hx-trigger')
    const page = await browser.get(`/runs/${id}`)
    expect(wordsOf(page)).toMatch(/Aspect ratio 3:2 .*Price 1 credit/)
    expect(wordsOf(page)).toContain(`rushes run image 'a fox'`)
    expect(page.body).toMatch(
      /<img src="\/outputs\/[\w.-]+\/[^"]+" alt="Output: a fox" width="300" height="200"/,
    )
    expect(page.body).not.toContain('hx-get')
  })

  test('shows a data: URL within an object as its hash, which its commands send, and integers of 64 bits', async () => {
    const { service, browser } = await signedIn()
    const layers = `[{"image_url":"${ONE_PIXEL_URL}","seed":9007199254740993}]`
    const body = `{"model":"${FOX.model}","input":{"prompt":"a fox","layers":${layers}}}`
    const id = await created(service, body)
    const [details = '', commands] = (await browser.words(`/runs/${id}`)).split('Create it again')
    expect(details).toMatch(
      /Layers {"image_url":{"sha256":"\w{64}","bytes":70,"content_type":"image\/png"},"seed":9007199254740993}/,
    )
    expect(commands).toContain(`rushes run image 'a fox' \\ --input '{"layers":${layers}`)
    expect(commands).not.toContain('sha256')
  })

  test('says of a cancel what happened, and shows a result that it was too late for', async () => {
    const { browser } = await signedIn()
    const id = await createInConsole(browser)
    expect(await browser.words(`/runs/${id}`)).toContain('Really cancel')
    const sent = await browser.submit(`/runs/${id}/cancel`)
    expect(leadsTo(sent)).toBe(`/runs/${id}`)
    const words = await browser.words(`/runs/${id}`)
    expect(words).toContain('Canceled The run was canceled. Its price was refunded. canceled')
    expect(words).not.toContain('Really cancel')
    expect((await browser.get('/runs')).body).not.toContain('class="bad"')

    const other = await rendering()
    const user = await signInByLink(other)
    const done = await createInConsole(user)
    await ended(other, done)
    const late = await user.submit(`/runs/${done}/cancel`)
    expect(await user.words(leadsTo(late) ?? '')).toContain('succeeded')
  })

  test('that is being rendered says after a cancel that it is being stopped, and offers no other cancel', async () => {
    const engine = createCommandedEngine({ stuck: true })
    const { browser } = await signedIn({ rendering: true, engine })
    const id = await createInConsole(browser)
    await until('the engine started', () => engine.waiting === 1)
    for (let times = 1; times <= 2; times++)
      expect(leadsTo(await browser.submit(`/runs/${id}/cancel`))).toBe(`/runs/${id}`)
    const words = await browser.words(`/runs/${id}`)
    expect(words).toContain('The run was canceled. The service is stopping it.')
    expect(words).not.toContain('Really cancel')
    engine.finish()
  })

  test('keeps its row when its files are deleted', async () => {
    const engine = createInstantEngine()
    const { service, browser } = await signedIn({ rendering: true, engine, retainMs: 60_000 })
    const id = await createInConsole(browser)
    await ended(service, id)
    await service.clock.advance(180_000)
    expect(await browser.words(`/runs/${id}`)).toContain('The files of this run were deleted.')
    expect(await browser.words('/runs')).toContain('files deleted')
  })

  test('that failed says why, in red; markup and 100,000 characters stay text', async () => {
    const text = `</textarea><script>"onload="x \u202Erow ${'x'.repeat(99_000)}`
    const service = await createConsoleService({
      rendering: true,
      engine: { render: () => Promise.reject(new Error(text.slice(0, 200))) },
    })
    const browser = await signInByLink(service)
    const id = await createInConsole(browser, { prompt: text })
    await ended(service, id)
    for (const path of ['/runs', '/runs?view=grid', `/runs/${id}`]) {
      const { status, body } = await browser.get(path)
      expect([path, status]).toEqual([path, 200])
      expect(body.replace(/<script (defer|type="module") src="[^"]*">/g, '')).not.toContain('<script')
      expect(body).not.toMatch(/<[^>]* onload=/)
    }
    expect(await browser.words(`/runs/${id}`)).toContain('x'.repeat(99_000))
    const form = await submitRun(browser, { prompt: text, quality: 'best' })
    expect(wordsOf(form)).toContain('x'.repeat(99_000))
    expect(form.body.replace(/<script (defer|type="module") src="[^"]*">/g, '')).not.toContain('<script')
  })
})

test('a page has a strict policy, is not stored by proxies, and is compressed if the browser accepts that', async () => {
  const { service, browser } = await signedIn()
  const { header } = await browser.get('/runs')
  expect(header('content-security-policy')).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: http://127.0.0.1:7878; " +
      "media-src 'self' data: http://127.0.0.1:7878; connect-src 'self'; base-uri 'none'; form-action 'self'; " +
      "frame-ancestors 'none'",
  )
  expect(header('cache-control')).toBe('private, no-cache')
  expect(header('x-content-type-options')).toBe('nosniff')
  const cookie = `rushes_session=${browser.cookie}`
  const packed = await load(service, '/runs', { cookie, 'accept-encoding': 'gzip' })
  expect([packed.header('content-encoding'), packed.bytes[0]]).toEqual(['gzip', 0x1f])
  const asset = await load(service, '/assets/htmx.js?v=1', { 'accept-encoding': 'gzip' })
  expect([asset.status, asset.header('cache-control')]).toEqual([200, 'public, max-age=31536000, immutable'])
  expect((await load(service, '/assets/htmx.js?v=2')).header('cache-control')).toBe('no-cache')
  expect((await load(service, '/assets/none.js')).status).toBe(404)
})

test('a page shows pictures from a bucket, as soon as URLs of it can be signed', async () => {
  const folder = temporaryFolder()
  let canSign = false
  const signedUrl = async () => {
    if (!canSign) throw new Error('no credentials')
    return 'https://bucket.example/signed'
  }
  const clock = createManualClock()
  const storage = { files: { ...createLocalFiles(folder), signedUrl } }
  const browser = await signInByLink(await createConsoleService({ storage, clock }))
  const policy = async () => (await browser.get('/runs')).header('content-security-policy')
  expect(await policy()).not.toContain('bucket.example')
  canSign = true
  expect(await policy()).toContain('http://127.0.0.1:7878 https://bucket.example;')
})

test('no attribute of a page needs inline script, inline style or eval', async () => {
  const service = await rendering()
  const browser = await signInByLink(service)
  const id = await createInConsole(browser)
  await ended(service, id)
  for (const path of [...PAGES, '/runs?view=grid', `/runs/${id}`])
    expect((await browser.get(path)).body).not.toMatch(
      / (style|on\w+|hx-on[^=]*|hx-vals)=|<style|hx-trigger="[^"]*\[|js:/,
    )
})

test('a missing page is a page with 404, also without a session; an unknown path of the API is JSON', async () => {
  const browser = createBrowser(await createConsoleService())
  const missing = await browser.get('/nope')
  expect([missing.status, missing.header('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
  const { status, body } = await browser.get('/api/v1/nope')
  expect([status, body.error.code]).toEqual([404, 'not_found'])
})

test('a missing run is a page with 404, and its live part is empty', async () => {
  const { browser } = await signedIn()
  const missing = await browser.get('/runs/run_none')
  expect([missing.status, wordsOf(missing)]).toEqual([404, expect.stringContaining('404 Not Found')])
  const part = await browser.ask('GET', '/runs/run_none/state', undefined, { 'hx-request': 'true' })
  expect([part.status, part.body]).toEqual([404, ''])
})

test('a user of a banned account can read and cancel, but creates nothing', async () => {
  const { service, browser } = await signedIn()
  const id = await createInConsole(browser)
  await withStore(service, (store) => store.setBanned('default', true))
  expect((await browser.get('/runs')).status).toBe(200)
  const run = await submitRun(browser)
  expect([run.status, wordsOf(run)]).toEqual([422, expect.stringContaining('The account is banned.')])
  expect((await browser.submit('/keys/new', { name: 'x', form_key: 'k' })).status).toBe(422)
  expect((await browser.submit(`/runs/${id}/cancel`)).status).toBe(303)
})

test('a change whose session ends while its form arrives is answered with 401, and changes nothing', async () => {
  const service = await createConsoleService({ port: 0 })
  const url = service.baseUrl
  const state = () =>
    withStore(service, async (store) => [
      (await store.listRuns({ accountId: 1, limit: 9 })).runs,
      (await store.listKeys()).map(({ name, disabled }) => [name, disabled]),
    ])
  for (const [path, body] of [
    ['/runs', `model=${FOX.model}&prompt=late&form_key=k`],
    [`/runs/${await created(service)}/cancel`, 'x=1'],
    ['/keys/new', 'name=late&form_key=k'],
    ['/keys/1', 'name=late'],
    ['/keys/1/disable', 'x=1'],
  ] as const) {
    const browser = await signInByLink(service)
    await service.clock.advance(60_000)
    const before = await state()
    const line = dial(url)
    line.send(
      `POST ${path} HTTP/1.1\r\nHost: ${new URL(url).host}\r\nOrigin: ${url}\r\nCookie: rushes_session=${browser.cookie}\r\n` +
        `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n`,
    )
    // The service extends the session when the headers have arrived. Then it waits for the body.
    const usedAtMs = () =>
      withStore(service, async (store) => (await store.listSessions(2, service.clock.now()))[0]?.usedAtMs)
    await expect.poll(usedAtMs).toBe(service.clock.now())
    await withStore(service, (store) => store.endSessions(2))
    line.send(body)
    await line.until(isWhole)
    expect(line.heard, path).toMatch(/^HTTP\/1\.1 401 /)
    expect(await state(), path).toEqual(before)
  }
})

test('a browser without a session gets no page and no file of the user, and sends no form of a run', async () => {
  const browser = createBrowser(await createConsoleService())
  for (const path of [...PAGES, '/runs/x', '/credits.csv'])
    expect([path, (await browser.get(path)).status]).toEqual([path, 303])
  for (const path of ['/new/form', '/new/price', '/runs'])
    expect([path, (await browser.submit(path)).status]).toEqual([path, 401])
})
