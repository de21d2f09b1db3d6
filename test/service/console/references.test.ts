/** The images that were sent with a run, as the console shows them. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CONSOLE_PATHS } from '../../../src/protocol/console.js'
import {
  createConsoleService,
  createInConsole,
  FOX,
  load,
  pathOf,
  refusal,
  signInByLink,
} from '../../support/console.js'
import { ONE_PIXEL_PNG } from '../../support/engines.js'

const DATA = `data:image/png;base64,${ONE_PIXEL_PNG.toString('base64')}`
const PAGE = 'data:text/html,<script>alert(1)</script>'

const pathTo = (id: string, position: number | string) =>
  pathOf(CONSOLE_PATHS.reference, id).replace(':position', String(position))

async function createRun() {
  const service = await createConsoleService()
  const browser = await signInByLink(service)
  const input = { prompt: 'a fox', image_urls: ['https://e.test/a.png', DATA, PAGE] }
  const { id } = await createInConsole(browser, { ...FOX, input })
  return { service, browser, id: id as string }
}

test('a reference image is served as it was sent, with the headers of an output', async () => {
  const { service, browser, id } = await createRun()
  const headers = { cookie: `rushes_session=${browser.cookie}` }
  const answer = await load(service, pathTo(id, 1), headers)
  expect(answer.bytes).toEqual(ONE_PIXEL_PNG)
  const names = ['content-type', 'content-disposition', 'cache-control', 'x-content-type-options']
  expect(names.map((name) => answer.header(name))).toEqual([
    'image/png',
    expect.stringContaining('inline; filename="reference-2"'),
    'private, max-age=31536000, immutable',
    'nosniff',
  ])
  const known = { ...headers, 'if-none-match': answer.header('etag') ?? '' }
  expect(await load(service, pathTo(id, 1), known)).toMatchObject({ status: 304, bytes: Buffer.of() })

  const page = await browser.get(pathTo(id, 2))
  expect([page.header('content-type'), page.header('content-security-policy')]).toEqual([
    'text/html',
    expect.stringMatching(/^default-src 'none'; .* sandbox$/),
  ])
})

test('a reference image needs a session of the account, and a position that has one', async () => {
  const { service, browser, id } = await createRun()
  for (const position of [0, 3, -1, 'length', 'x'])
    expect(await browser.get(pathTo(id, position))).toMatchObject(refusal(404, 'not_found'))
  expect(await browser.get(pathTo('run_x', 1))).toMatchObject(refusal(404, 'run_not_found'))
  const stranger = await signInByLink(service, 'eve@example.com', 'other')
  expect(await stranger.get(pathTo(id, 1))).toMatchObject(refusal(404, 'run_not_found'))
  browser.cookie = undefined
  expect(await browser.get(pathTo(id, 1))).toMatchObject(refusal(401, 'not_signed_in'))
})

test('a removed reference image is 410', async () => {
  const { service, browser, id } = await createRun()
  rmSync(join(service.dataFolder, 'files', id), { recursive: true })
  expect(await browser.get(pathTo(id, 1))).toMatchObject(refusal(410, 'gone'))
})
