/** `rushes login --web` against the real service; a browser's part is played with its session and a real request to the port. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createInterrupts } from '../../src/host/interrupts.js'
import { AUTH_PATHS, CONSOLE_PATHS } from '../../src/protocol/console.js'
import { type CliService, createCliService, LOOPBACK_URL, scripted } from '../support/cli.js'
import { type Browser, createUser, TEST_PAGE } from '../support/console.js'

const NO_KEY = { RUSHES_API_KEY: '' }

const createService = (options = {}): Promise<CliService> =>
  createCliService({ console: TEST_PAGE, rendering: false, ...options })

interface Asked {
  readonly page: URL
  readonly query: URLSearchParams
}

function readPage(target: string): Asked {
  const page = new URL(target)
  const [route = '', query = ''] = page.hash.split('?')
  expect(route).toBe('#/login')
  return { page, query: new URLSearchParams(query) }
}

async function grant(browser: Browser, { query }: Asked): Promise<string> {
  const { status, body } = await browser.post(CONSOLE_PATHS.logins, {
    challenge: query.get('challenge'),
    name: query.get('name'),
  })
  expect(status).toBe(201)
  return body.code
}

const returnTo = async ({ query }: Asked, result: Readonly<Record<string, string>>) => {
  const given = new URLSearchParams({ state: query.get('state') ?? '', ...result })
  const response = await fetch(`http://127.0.0.1:${query.get('port')}/?${given}`)
  return { status: response.status, text: await response.text() }
}

const configOf = ({ home }: CliService): string => readFileSync(join(home, 'config', 'config.json'), 'utf8')

test('a key is created by the user on the console, and stored', async () => {
  const service = await createService()
  const browser = await createUser(service)
  let seen: Awaited<ReturnType<typeof returnTo>> | undefined
  const ran = await service.run(['login', '--web', '--base-url', LOOPBACK_URL], {
    env: NO_KEY,
    async openResult(target) {
      const asked = readPage(target)
      expect(asked.page.origin).toBe(LOOPBACK_URL)
      expect((await returnTo(asked, { state: 'of another page', code: 'x' })).status).toBe(404)
      const code = await grant(browser, asked)
      void returnTo(asked, { code }).then((answer) => {
        seen = answer
      })
    },
  })
  expect(ran).toMatchObject({ code: 0, stdout: '' })
  expect(ran.stderr).toContain('The service accepted the API key.')
  expect(ran.stderr).toContain(
    "Set the service's models: models.video=rushes/preview-video, models.image=rushes/preview-image.",
  )
  await expect.poll(() => seen).toMatchObject({ status: 200, text: expect.stringContaining('logged in') })

  const { body } = await browser.get(CONSOLE_PATHS.keys)
  expect(body.keys[0].name).toMatch(/^rushes on \S/)
  const [secret] = /rk_[\w-]{43}/.exec(configOf(service)) ?? []
  expect(secret?.startsWith(body.keys[0].prefix)).toBe(true)
  // The key is in no output, in no address of a page, and works.
  expect(ran.stderr + ran.opened.join()).not.toContain(secret)
  const env = { ...NO_KEY, RUSHES_BASE_URL: '', RUSHES_IMAGE_MODEL: '' }
  expect((await service.run(['run', 'image', 'a fox', '--no-wait'], { env })).code).toBe(0)
})

test.each([
  ['keeps the models that the user has set', undefined, 'acme/still-1'],
  ['replaces those of another service', 'https://other.example', 'rushes/preview-image'],
])('a login %s', async (_, origin, expected) => {
  const service = await createService()
  const browser = await createUser(service)
  const apiKey = origin && { value: 'rk_other', origin }
  mkdirSync(join(service.home, 'config'))
  writeFileSync(
    join(service.home, 'config', 'config.json'),
    JSON.stringify({ profiles: { default: { apiKey, models: { image: 'acme/still-1' } } } }),
  )
  const ran = await service.run(['login', '--web'], {
    env: NO_KEY,
    openResult: async (target) => {
      const asked = readPage(target)
      void returnTo(asked, { code: await grant(browser, asked) })
    },
  })
  expect(ran.code).toBe(0)
  expect(JSON.parse(configOf(service)).profiles.default.models).toEqual({
    video: 'rushes/preview-video',
    image: expected,
  })
})

/** Uses up the sign-ins of this address. */
async function signInOften({ fetch, baseUrl }: CliService): Promise<void> {
  for (let count = 0; count < 5; count++)
    await fetch({
      method: 'POST',
      url: new URL(AUTH_PATHS.link, baseUrl),
      headers: { 'content-type': 'application/json', origin: new URL(baseUrl).origin },
      body: Buffer.from('{"token":"x"}'),
    })
}

test('after too many sign-ins it waits, and the code is exchanged a minute later', async () => {
  const service = await createService()
  const browser = await createUser(service)
  const ran = await service.run(['login', '--web'], {
    env: NO_KEY,
    openResult: async (target) => {
      const asked = readPage(target)
      await signInOften(service)
      void returnTo(asked, { code: await grant(browser, asked) })
    },
  })
  expect(ran.code).toBe(0)
  expect(ran.stderr).toContain('Too many sign-ins from this address. Trying again for a minute.')
  expect(configOf(service)).toMatch(/rk_/)
})

test('when others use up the sign-ins all the time, it says what the limit is about', async () => {
  const service = await createService()
  const browser = await createUser(service)
  const ran = await service.run(['login', '--web'], {
    env: NO_KEY,
    fetch: async (request) => {
      if (request.url.pathname === AUTH_PATHS.login) await signInOften(service)
      return await service.fetch(request)
    },
    openResult: async (target) => {
      const asked = readPage(target)
      void returnTo(asked, { code: await grant(browser, asked) })
    },
  })
  expect(ran.code).toBe(7)
  expect(ran.stderr).toContain('No API key was stored.')
  expect(ran.stderr).toContain('The service counts the sign-ins of all users at this address.')
  expect(ran.stderr).not.toContain('Another program')
})

test('declined: nothing is created, nothing is stored', async () => {
  const service = await createService()
  const ran = await service.run(['login', '--web'], {
    env: NO_KEY,
    openResult: async (target) => void returnTo(readPage(target), { error: 'access_denied' }),
  })
  expect(ran).toMatchObject({ code: 4, stdout: '' })
  expect(ran.stderr).toContain('declined in the browser; nothing was stored')
  expect(() => configOf(service)).toThrow('ENOENT')
})

test('a code that is not the one of this command is refused, and the browser is told', async () => {
  const service = await createService()
  const browser = await createUser(service)
  let seen: Awaited<ReturnType<typeof returnTo>> | undefined
  const ran = await service.run(['login', '--web'], {
    env: NO_KEY,
    async openResult(target) {
      const asked = readPage(target)
      const other = new URLSearchParams({ challenge: 'A'.repeat(43), name: 'another' })
      const code = await grant(browser, { ...asked, query: other })
      void returnTo(asked, { code }).then((answer) => {
        seen = answer
      })
    },
  })
  expect(ran.code).toBe(4)
  expect(ran.stderr).toContain('No API key was stored.')
  await expect.poll(() => seen).toMatchObject({ status: 400, text: expect.stringContaining('not logged in') })
  expect(
    (await browser.get(CONSOLE_PATHS.keys)).body.keys.map(({ name }: { name: string }) => name),
  ).not.toContain('another')
})

test.each([
  ['without a browser', [], 'Could not open a browser (xdg-open is not installed)'],
  ['under --quiet', ['--quiet'], 'Confirm the login in a browser on this machine: '],
  ['under --json', ['--json'], '{"warning":{"message":"Confirm the login in a browser on this machine: '],
])('%s the address is printed', async (_, flags, says) => {
  const service = await createService()
  const browser = await createUser(service)
  let isAsked = false
  const ran = await service.run(['login', '--web', ...flags], {
    env: NO_KEY,
    openResult: async () => {
      throw new Error('xdg-open is not installed')
    },
    onStderr(text) {
      const [target] = /http:\S+#\/login[^\s"]+/.exec(text) ?? []
      if (target === undefined || isAsked) return
      isAsked = true
      const asked = readPage(target)
      void grant(browser, asked).then((code) => returnTo(asked, { code }))
    },
  })
  expect(ran.code).toBe(0)
  expect(ran.stderr).toContain(says)
})

test('nobody comes: it ends after 10 minutes', async () => {
  const service = await createService()
  const ran = await service.run(['login', '--web'], {
    env: NO_KEY,
    // Once it has said so it waits.
    onStderr: () => void setImmediate(() => service.clock.advance(600_000)),
  })
  expect(ran.code).toBe(4)
  expect(ran.stderr).toContain(
    'The login was not confirmed in the browser within 10 minutes; nothing was stored.',
  )
})

test('Ctrl-C ends the wait', async () => {
  const service = await createService()
  const interrupts = createInterrupts()
  const ran = await service.run(['login', '--web'], {
    env: NO_KEY,
    interrupts,
    openResult: async () => interrupts.interrupt('SIGINT'),
  })
  expect(ran.code).toBe(130)
})

test.each([
  ['a service whose document has no login', { status: 200, body: { paths: { '/api/v1/runs': {} } } }],
  ['a service without a document', { status: 404, body: { error: { code: 'not_found', message: 'no' } } }],
  ['something that is not JSON', { status: 200, body: '<!doctype html>' }],
  ['null', { status: 200, body: 'null' }],
])('%s: it says so, and opens nothing', async (_, answer) => {
  const service = await createService()
  const { fetch, requests } = scripted(answer)
  const ran = await service.run(['login', '--web'], { env: NO_KEY, fetch })
  expect(ran).toMatchObject({ code: 2, stdout: '', opened: [] })
  expect(ran.stderr).toContain(`${LOOPBACK_URL} does not support \`rushes login --web\`.`)
  expect(ran.stderr).toContain('without --web')
  expect(requests).toHaveLength(1)
})

test('a service without a console says that it cannot', async () => {
  const service = await createService({ console: undefined })
  expect((await service.run(['login', '--web'], { env: NO_KEY })).code).toBe(2)
})
