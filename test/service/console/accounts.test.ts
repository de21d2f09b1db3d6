/** Users of two accounts see nothing of each other's: every route is asked with the other's session, and with none. */
import { describe, expect, test } from 'vitest'
import { AUTH_PATHS, CONSOLE_PATHS } from '../../../src/protocol/console.js'
import {
  type Browser,
  createBrowser,
  createConsoleService,
  createUser,
  FOX,
  type Method,
  pathOf,
  refusal,
  signInByLink,
} from '../../support/console.js'
import { createInstantEngine } from '../../support/engines.js'
import { ended, type TestService } from '../../support/service.js'

const SECRET = 'a secret fox of the other account'
const KEY_NAME = 'a secret fox'

interface Route {
  readonly method: Method
  readonly path: string
}

const METHODS: readonly Method[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']

/** The methods of each path that the service refuses without a session or from another origin: others are 404. */
async function routesOf(
  paths: Readonly<Record<string, string>>,
  service: TestService,
): Promise<readonly Route[]> {
  const nobody = createBrowser(service, { origin: 'https://evil.example' })
  const routes: Route[] = []
  for (const path of Object.values(paths))
    for (const method of METHODS)
      if ((await nobody.ask(method, path)).status !== 404) routes.push({ method, path })
  return routes
}

/** A body that the route would take. */
const BODIES: Readonly<Record<string, unknown>> = {
  [`POST ${CONSOLE_PATHS.runs}`]: FOX,
  [`POST ${CONSOLE_PATHS.keys}`]: { name: 'mine' },
  [`PATCH ${CONSOLE_PATHS.key}`]: { name: 'stolen' },
}

/** An account with a run, a key and a session, and the ids of these. */
async function createOwner(service: TestService) {
  const browser = await createUser(service, 'ann@example.com', 'acme')
  const run = await browser.post(CONSOLE_PATHS.runs, { ...FOX, input: { prompt: SECRET } })
  expect(run.status).toBe(201)
  const key = await browser.post(CONSOLE_PATHS.keys, { name: KEY_NAME, quota: 777 })
  const { sessions } = (await browser.get(CONSOLE_PATHS.sessions)).body
  const ids = [
    [CONSOLE_PATHS.run, run.body.id],
    [CONSOLE_PATHS.thumbnail, run.body.id],
    [CONSOLE_PATHS.key, key.body.key.id],
    [CONSOLE_PATHS.session, sessions[0].id],
  ] as const
  return {
    browser,
    run: run.body,
    key: key.body,
    idOf: (path: string) => ids.find(([each]) => each === path)?.[1],
  }
}

const stateOf = async ({ get }: Browser) => ({
  runs: (await get(CONSOLE_PATHS.runs)).body,
  keys: (await get(CONSOLE_PATHS.keys)).body,
  credits: (await get(CONSOLE_PATHS.credits)).body,
  sessions: (await get(CONSOLE_PATHS.sessions)).body,
})

test('every route of the console hides the data of another account', async () => {
  const service = await createConsoleService()
  const owner = await createOwner(service)
  const stranger = await signInByLink(service, 'eve@example.com', 'other')
  const before = await stateOf(owner.browser)
  const routes = await routesOf(CONSOLE_PATHS, service)
  expect(routes.length).toBeGreaterThan(15)
  for (const { method, path } of routes) {
    await service.clock.advance(1_000)
    const id = owner.idOf(path)
    const asked = `${path.replace(':id', String(id))}${path === CONSOLE_PATHS.runs ? `?ids=${owner.run.id}` : ''}`
    const answer = await stranger.ask(method, asked, BODIES[`${method} ${path}`])
    const text = JSON.stringify(answer.body)
    const about = `${method} ${path}`
    for (const secret of [KEY_NAME, owner.run.id]) expect(text, about).not.toContain(secret)
    expect(answer.status, about).toBe(path.includes(':id') ? 404 : method === 'POST' ? 201 : 200)
    if (answer.status === 404 && method !== 'HEAD')
      expect(answer.body.error.code).toBe(path.startsWith(CONSOLE_PATHS.run) ? 'run_not_found' : 'not_found')
  }
  expect(await stateOf(owner.browser)).toEqual({ ...before, sessions: expect.anything() })
  const listed = await stranger.get(`${CONSOLE_PATHS.runs}?ids=${owner.run.id}`)
  expect(listed.body.changed).toEqual([])
  expect(listed.body.runs.map(({ prompt }: { prompt: string }) => prompt)).toEqual(['a fox'])
  const own = await stateOf(stranger)
  expect(own.keys.keys.map(({ name }: { name: string }) => name)).toEqual(['mine'])
  expect(own.credits.balance).toBe(9_999)
  expect((await owner.browser.get(AUTH_PATHS.session)).status).toBe(200)
})

describe('every route', () => {
  test('answers 401 without a session', async () => {
    const service = await createConsoleService()
    const owner = await createOwner(service)
    const nobody = createBrowser(service)
    const forged = createBrowser(service)
    forged.cookie = 'a'.repeat(43)
    const routes = await routesOf(CONSOLE_PATHS, service)
    for (const { method, path } of routes)
      for (const browser of [nobody, forged]) {
        const asked = path.replace(':id', String(owner.idOf(path)))
        const { status, body, header } = await browser.ask(method, asked, BODIES[`${method} ${path}`])
        expect(status, `${method} ${path}`).toBe(401)
        if (method !== 'HEAD') expect(body.error.code).toBe('not_signed_in')
        expect(header('cache-control')).toBe('no-store')
      }
  })

  test('refuses every change from another origin with 403', async () => {
    const service = await createConsoleService()
    const owner = await createOwner(service)
    const before = await stateOf(owner.browser)
    const routes = [
      ...(await routesOf(CONSOLE_PATHS, service)),
      ...(await routesOf(AUTH_PATHS, service)),
    ].filter(({ method }) => method !== 'GET' && method !== 'HEAD')
    expect(routes.length).toBeGreaterThan(8)
    const headers = [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: 'http://127.0.0.1:9' },
      { origin: 'http://127.0.0.1:7878', 'sec-fetch-site': 'cross-site' },
      { origin: '' },
    ]
    for (const { method, path } of routes)
      for (const each of headers) {
        const about = `${method} ${path}`
        const asked = pathOf(path, owner.idOf(path))
        const answer = await owner.browser.ask(method, asked, BODIES[about] ?? {}, each)
        expect(answer, `${about} ${JSON.stringify(each)}`).toMatchObject(refusal(403, 'foreign_origin'))
      }
    const { cookie } = owner.browser
    for (const { method, path } of routes) {
      const missing = await service.fetch({
        method: method as 'POST',
        url: new URL(path, service.baseUrl),
        headers: { cookie: `rushes_session=${cookie}` },
        body: Buffer.from('{}'),
      })
      expect(missing.status, `${method} ${path}`).toBe(403)
    }
    expect(await stateOf(owner.browser)).toEqual(before)
    expect((await owner.browser.get(AUTH_PATHS.session)).status).toBe(200)
  })

  test('answers 404 in a service without a console, as do its page and files', async () => {
    const service = await createConsoleService({ console: undefined })
    const browser = createBrowser(service)
    const paths = ['/', '/assets/app-1.js', ...Object.values(AUTH_PATHS), ...Object.values(CONSOLE_PATHS)]
    for (const path of paths)
      for (const method of ['GET', 'POST', 'DELETE'] as const)
        expect(await browser.ask(method, path), path).toMatchObject(refusal(404, 'not_found'))
    const { body } = await browser.get('/api/v1/openapi.json')
    expect(Object.keys(body.paths).filter((path) => path.startsWith('/api/auth'))).toEqual([])
    expect(JSON.stringify(body)).not.toContain('authentication endpoints')
  })
})

test('the console and the API show the same run and outputs', async () => {
  const service = await createConsoleService({ rendering: true, engine: createInstantEngine() })
  const { browser, run, key } = await createOwner(service)
  const asking = { key: key.api_key }
  const object = await ended(service, run.id, asking)
  const details = (await browser.get(CONSOLE_PATHS.run.replace(':id', run.id))).body
  expect(details.service).toEqual(object)
  expect(details).toMatchObject({
    id: run.id,
    kind: 'image',
    status: 'succeeded',
    prompt: SECRET,
    price: 1,
    key: null,
    is_refunded: false,
    crashes: 0,
  })
  expect(details.outputs).toMatchObject([
    { url: object.output.urls[0], name: 'image.png', content_type: 'image/png' },
  ])
  const file = await browser.get(`/${details.outputs[0].path}`)
  expect([file.status, file.header('etag')]).toEqual([200, `"${details.outputs[0].sha256}"`])
})
