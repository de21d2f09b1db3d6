/** The pages of the API keys, the credits and the account. */
import { describe, expect, test } from 'vitest'
import { csvLine } from '../../../src/service/web/credits.js'
import {
  ANN,
  addUser,
  createByKey,
  createConsoleService,
  createInConsole,
  hiddenField,
  leadsTo,
  signedIn,
  signInByLink,
  withStore,
  wordsOf,
} from '../../support/console.js'
import { ask, type TestService } from '../../support/index.js'

const secretOf = (body: string): string | undefined => /rk_[\w-]{43}/.exec(body)?.[0]

const statusWith = async (service: TestService, key: string | undefined) =>
  (await ask(service, 'GET', '/api/v1/runs/run_none', undefined, { key })).status

describe('API keys', () => {
  test('are created by the form, shown once, and work; the same form sent again makes none', async () => {
    const { service, browser } = await signedIn()
    const fields = {
      form_key: hiddenField(await browser.get('/keys/new'), 'form_key'),
      name: 'CI <nightly>',
      spend_limit: '5',
      quota: '7',
      allowed_ips: '10.0.0.0/8\r\n127.0.0.1',
      expires_at: '2026-02-01',
    }
    const created = await browser.submit('/keys/new', fields)
    expect([created.status, created.header('cache-control')]).toEqual([200, 'no-store'])
    const secret = secretOf(created.body)
    expect(await statusWith(service, secret)).toBe(404)
    const [again, twice] = await Promise.all([
      browser.submit('/keys/new', fields),
      browser.submit('/keys/new', fields),
    ])
    for (const answer of [again, twice]) {
      expect(wordsOf(answer)).toContain('This key was created before, and was shown once.')
      expect(secretOf(answer.body)).toBeUndefined()
    }
    const list = await browser.get('/keys')
    expect(secretOf(list.body)).toBeUndefined()
    expect(wordsOf(list)).toMatch(
      /CI <nightly> rk_\S{6}… expires 2026-02-01 23:59:59 UTC only from 10\.0\.0\.0\/8, 127\.0\.0\.1 active 0 of 5 0 of 7/,
    )
    // The same form of another user is another key.
    const other = await signInByLink(service, 'bob@example.com')
    expect(secretOf((await other.submit('/keys/new', fields)).body)).not.toBe(secret)
  })

  test('are changed, disabled and enabled; what the form cannot show stays', async () => {
    const { service, browser } = await signedIn()
    await withStore(service, (store) =>
      store.changeKey(1, { name: 'c\u200bi', expiresAtMs: 1, rate: { requests: 5, windowMs: 1_000 } }),
    )
    const form = await browser.get('/keys/1')
    const [, name = ''] = /name="name" value="([^"]*)"/.exec(form.body) ?? []
    const values = { name, spend_limit: '', allowed_ips: '', expires_at: '1970-01-01' }
    const saved = await browser.submit('/keys/1', { ...values, quota: '3' })
    expect(leadsTo(saved)).toBe('/keys')
    const key = () => withStore(service, (store) => store.findAccountKey(1, 1))
    expect(await key()).toMatchObject({ quota: 3, expiresAtMs: 1, rate: { requests: 5 }, name: 'c\u200bi' })
    await browser.submit('/keys/1/disable')
    expect(await key()).toMatchObject({ disabled: true })
    await browser.submit('/keys/1/enable')
    expect(await key()).toMatchObject({ disabled: false })
    expect(await browser.words('/keys')).toContain('expired')
  })

  test('without a valid name are refused, and the form keeps its texts', async () => {
    const { browser } = await signedIn()
    const answer = await browser.submit('/keys/new', { name: ' ', quota: '7', form_key: 'k' })
    expect(answer.status).toBe(422)
    expect(wordsOf(answer)).toContain('1 to 100 characters')
    expect(answer.body).toMatch(/name="quota"[^>]* value="7"/)
    expect(hiddenField(answer, 'form_key')).toBe('k')
    expect(secretOf((await browser.submit('/keys/new', { name: 'kept', form_key: 'k' })).body)).toBeDefined()
  })

  test('of another account are not found, and come in pages of 100', async () => {
    const service = await createConsoleService()
    const stranger = await signInByLink(service, 'eve@example.com', 'other')
    for (const path of ['/keys/1', '/keys/1/disable', '/keys/1/enable'])
      expect((await stranger.submit(path, { name: 'stolen' })).status).toBe(404)
    expect((await stranger.get('/keys/1')).status).toBe(404)
    await withStore(service, async (store) => {
      const { accountId = 0 } = (await store.findUser('eve@example.com')) ?? {}
      for (let at = 0; at < 101; at++)
        await store.addKey({ accountId, name: `key ${at}`, hash: `h${at}`, prefix: 'rk_', nowMs: 0 })
    })
    const first = await stranger.get('/keys')
    const older = /href="(\/keys\?before=\d+)"/.exec(first.body)?.[1] ?? ''
    const names = ({ body }: { body: string }) =>
      [...body.matchAll(/<bdi>(key \d+)/g)].map(([, name]) => name)
    expect(names(first)).toHaveLength(100)
    expect(names(await stranger.get(older))).toEqual(['key 0'])
  })
})

describe('credits', () => {
  test('show the balance, bars, and a ledger that is filtered by its URL', async () => {
    const { service, browser } = await signedIn()
    await createByKey(service, 2)
    const id = await createInConsole(browser)
    await browser.submit(`/runs/${id}/cancel`)
    const page = await browser.get('/credits')
    expect(wordsOf(page)).toContain('Balance 9,998 credits')
    expect(page.body).toContain('aria-label="Spent per day. 2 credits for 3 runs in 30 days.')
    expect(wordsOf(page)).toMatch(/The highest bar is 2 credits\..* 2025-12-03 2026-01-01 /)
    expect(page.body.match(/<rect /g)).toHaveLength(30)
    const kinds = async (query: string) =>
      [...(await browser.get(`/credits?${query}`)).body.matchAll(/class="badge \w+">(\w+)</g)].map(
        ([, kind]) => kind,
      )
    expect(await kinds('')).toEqual(['Refund', 'Charge', 'Charge', 'Charge', 'Added'])
    expect(await kinds('kind=charge&key=1')).toEqual(['Charge', 'Charge'])
    expect(await kinds('kind=&key=7')).toEqual([])
    expect((await browser.get('/credits?kind=x')).status).toBe(400)
  })

  test('as CSV have all entries that match, and no formula', async () => {
    const { service, browser } = await signedIn()
    await withStore(service, (store) => store.changeKey(1, { name: '=1+1' }))
    const [id] = await createByKey(service, 1)
    const { header, body } = await browser.get('/credits.csv?kind=charge')
    expect(header('content-disposition')).toBe('attachment; filename="credits.csv"')
    expect(body).toMatch(
      new RegExp(`^time,kind,amount,run,key number,key name\\r\\n\\S+Z,charge,-1,${id},1,'=1\\+1\\r\\n$`),
    )
    expect(csvLine(['a"b', '@d', -5, null])).toBe(`"a""b",'@d,-5,\r\n`)
    const stranger = await signInByLink(service, 'eve@example.com', 'other')
    expect((await stranger.get('/credits.csv')).body).not.toContain('charge')
    expect((await browser.get('/credits.csv?kind=x')).header('content-disposition')).toBeUndefined()
  })
})

describe('the account', () => {
  test('lists the sessions of the user, and the users', async () => {
    const { service, browser } = await signedIn()
    await signInByLink(service, 'bob@example.com')
    await addUser(service, 'eve@example.com', 'other')
    const words = await browser.words('/account')
    expect(words).toContain(`this session, ${browser.address} A session ends`)
    expect(words).toContain(`${ANN} no password yet bob@example.com no password yet`)
    expect(words).not.toContain('eve@example.com')
  })
})
