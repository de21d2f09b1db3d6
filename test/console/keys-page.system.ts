/** API keys on the page, and what the service then makes of them. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { describePages } from '../support/browser.js'
import { setBanned, withStore } from '../support/console.js'
import { holdAnswers, openSignedIn, type ServedConsole, serveConsole } from '../support/console-page.js'
import { ask } from '../support/service.js'

/** The status of a request with this key: 404 for a run that does not exist, when the key works. */
const statusWith = async (service: ServedConsole, key: string): Promise<number> =>
  (await ask(service, 'GET', '/api/v1/runs/run_none', undefined, { key })).status

const rowOf = (page: Page, name: string) =>
  page.getByRole('row').filter({ has: page.getByRole('rowheader', { name }) })

async function createKey(page: Page, name: string): Promise<string> {
  await page.getByRole('button', { name: 'New key' }).first().click()
  await page.getByLabel('Name').fill(name)
  await page.getByRole('button', { name: 'Create key' }).click()
  const secret = page.getByRole('region', { name: 'API key', exact: true })
  await secret.waitFor()
  return (await secret.innerText()).trim()
}

describePages('API keys in the console', (pages) => {
  it('appear only once, at their creation, with export lines for a terminal', async () => {
    const service = await serveConsole()
    const { page } = await openSignedIn(pages, service, '#/keys', {
      permissions: ['clipboard-read', 'clipboard-write'],
      hasClock: true,
    })
    const secret = await createKey(page, 'laptop')
    expect(secret).toMatch(/^rk_[\w-]{43}$/)
    expect(await statusWith(service, secret)).toBe(404)
    expect(await page.getByRole('region', { name: 'export lines' }).innerText()).toContain(
      `export RUSHES_BASE_URL=${service.url}\nexport RUSHES_API_KEY=${secret}\nexport RUSHES_IMAGE_MODEL=rushes/preview-image\n`,
    )
    // Otherwise the label is back after 2 s, perhaps before the test has read it.
    await page.clock.pauseAt(Date.now() + 60_000)
    await page.getByRole('button', { name: 'Copy API key' }).click()
    await page.getByRole('button', { name: 'Copied', exact: true }).waitFor()
    await page.clock.resume()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(secret)

    // Neither a press beside the dialog nor a key loses what is shown once.
    await page.mouse.click(5, 5)
    for (let press = 0; press < 3; press++) await page.keyboard.press('Escape')
    expect(await page.getByText(secret).first().isVisible()).toBe(true)
    expect(await page.locator('dialog:modal').count()).toBe(1)
    await page.getByRole('button', { name: 'I have copied it' }).click()
    expect(await page.getByText(secret).count()).toBe(0)
    const row = rowOf(page, 'laptop')
    expect(await row.innerText()).toContain(`${secret.slice(0, 8)}`)
    expect(await row.innerText()).toContain('Never')
    await page.reload()
    await row.waitFor()
    expect(await page.getByText(secret).count()).toBe(0)
  })

  it('show hostile names as text that cannot reorder the text around it', async () => {
    const service = await serveConsole()
    const [hostile, name] = ['<img src=x>\u202e\u2066 \u0007"\'</script>', '<img src=x> "\'</script>']
    await withStore(service, async (store) => {
      const accountId = await store.ensureAccount({ name: 'default', credits: 0, nowMs: 0 })
      await store.addKey({ accountId, name: hostile, hash: 'h', prefix: 'rk_x', nowMs: 0 })
    })
    const { page } = await openSignedIn(pages, service, '#/keys')
    const expectText = async () => {
      const html = String(await page.evaluate('document.documentElement.outerHTML'))
      expect(html).not.toMatch(/[\u202e\u2066\u0007]/)
      expect(await page.locator('img').count()).toBe(0)
    }
    await page.getByRole('button', { name: `Edit ${name}` }).click()
    expect(await page.getByLabel('Name').inputValue()).toBe(name)
    await expectText()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: `Disable ${name}` }).click()
    await page.getByText(`"${name}" is disabled.`).waitFor()
    await page.getByRole('button', { name: `Archive ${name}` }).click()
    await page.getByRole('heading', { name: `Archive "${name}"?` }).waitFor()
    await expectText()
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: 'Credits' }).first().click()
    await page.getByRole('option', { name }).waitFor({ state: 'attached' })
    await expectText()
  })

  it('can be renamed, limited, disabled and enabled again', async () => {
    const service = await serveConsole()
    const { page } = await openSignedIn(pages, service, '#/keys')
    const secret = await createKey(page, 'laptop')
    await page.getByRole('button', { name: 'I have copied it' }).click()

    await page.getByRole('button', { name: 'Edit laptop' }).click()
    await page.getByLabel('Name').fill('CI')
    await page.getByLabel('Spend limit').fill('200')
    await page.getByLabel('Quota').fill('x')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Enter 0 or more, or leave empty for no limit.').waitFor()
    await page.getByLabel('Quota').fill('50')
    await page.getByLabel('Allowed IP addresses').fill('127.0.0.1\n300.1.1.1')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('"300.1.1.1" is not an IP address or CIDR range.').waitFor()
    await page.getByLabel('Allowed IP addresses').fill('127.0.0.1\n::1')
    await page.getByRole('button', { name: 'Save' }).click()
    const row = rowOf(page, 'CI')
    await row.waitFor()
    for (const text of ['/ 200', '/ 50', 'Only from 127.0.0.1, ::1', 'Active'])
      expect(await row.innerText()).toContain(text)

    await page.getByRole('button', { name: 'Disable CI' }).click()
    await row.getByText('Disabled').waitFor()
    expect(await statusWith(service, secret)).toBe(401)
    await page.getByRole('button', { name: 'Enable CI' }).click()
    await row.getByText('Active').waitFor()
  })

  it('cannot be created for a banned account, and the page says why', async () => {
    const service = await serveConsole()
    await setBanned(service)
    const { page } = await openSignedIn(pages, service, '#/keys')
    await page.getByText('The account "default" is banned.').waitFor()
    expect(await page.getByRole('button', { name: 'New key' }).isDisabled()).toBe(true)
  })

  it('do not break the other pages when the service sends null or missing fields', async () => {
    const service = await serveConsole()
    const { page } = await openSignedIn(pages, service, '#/account')
    let sent: unknown = { keys: [{ id: 1, name: 'bare' }] }
    await page.route('**/api/console/keys', (route) => route.fulfill({ json: sent }))
    await page.getByRole('link', { name: 'API keys' }).click()
    await rowOf(page, 'bare').getByText('Active').waitFor()
    sent = { keys: null }
    await page.reload()
    await page.getByText('This page could not be displayed.').waitFor()
    await page.getByRole('link', { name: 'Account' }).click()
    await page.getByRole('heading', { level: 1, name: 'Account' }).waitFor()
  })
})

describePages('late responses to changes of keys', (pages) => {
  const secretOf = (page: Page) => page.getByRole('region', { name: 'API key', exact: true })

  it('show the secret once, on the page that is open by then', async () => {
    const service = await serveConsole()
    const { page } = await openSignedIn(pages, service, '#/keys')
    const { taken } = await holdAnswers(page, 'POST', '**/api/console/keys**')
    await page.getByRole('button', { name: 'New key' }).first().click()
    await page.getByLabel('Name').fill('laptop')
    await page.getByRole('button', { name: 'Create key' }).click()
    const created = await taken(0)
    await page.keyboard.press('Escape')
    await page.getByText('The key is being created. Its secret will appear here.').waitFor()
    await page.getByRole('link', { name: 'Account', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Account' }).waitFor()
    // A reload would lose it: the browser asks.
    const isUnloadKept = () =>
      page.evaluate(`!window.dispatchEvent(new Event('beforeunload', { cancelable: true }))`)
    expect(await isUnloadKept()).toBe(true)
    await created.release()
    await page.getByRole('dialog', { name: '"laptop" is created' }).waitFor()
    expect(await isUnloadKept()).toBe(true)
    const secret = (await secretOf(page).innerText()).trim()
    expect(await statusWith(service, secret)).toBe(404)
    // It stays until it was confirmed, also on the way to another page.
    await page.evaluate('location.hash = "#/credits"')
    await page.getByRole('heading', { level: 1, name: 'Credits' }).waitFor()
    await page.getByRole('button', { name: 'I have copied it' }).click()
    await expect.poll(isUnloadKept).toBe(false)
    await page.getByRole('link', { name: 'API keys' }).click()
    await rowOf(page, 'laptop').waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
  })

  it('leave a notice and the key in the list when they are lost', async () => {
    const service = await serveConsole()
    const { page } = await openSignedIn(pages, service, '#/keys', { ignored: /net::ERR_FAILED/ })
    const { taken } = await holdAnswers(page, 'POST', '**/api/console/keys**')
    await page.getByRole('button', { name: 'New key' }).first().click()
    await page.getByLabel('Name').fill('laptop')
    await page.getByRole('button', { name: 'Create key' }).click()
    await (await taken(0)).lose()
    const notice = page.getByRole('alert').filter({ hasText: 'The key "laptop" may have been created.' })
    await notice.waitFor()
    await rowOf(page, 'laptop').waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
    await page.getByRole('button', { name: 'Disable laptop' }).click()
    await rowOf(page, 'laptop').getByText('Disabled').waitFor()
    await notice.getByRole('button', { name: 'Dismiss' }).click()
    await notice.waitFor({ state: 'detached' })

    const changes = await holdAnswers(page, 'PATCH', '**/api/console/keys/*')
    await page.getByRole('button', { name: 'Enable laptop' }).click()
    await (await changes.taken(0)).lose()
    await page.getByText('"laptop" may have been changed: the response was lost. The list reloads.').waitFor()
    await rowOf(page, 'laptop').getByText('Active').waitFor()
  })
})

describePages('a list of many keys', (pages) => {
  it('loads in pages, and shows the refusal of the service at 200 keys', async () => {
    const service = await serveConsole()
    await withStore(service, async (store) => {
      const accountId = await store.ensureAccount({ name: 'default', credits: 0, nowMs: 0 })
      for (let at = 0; at < 199; at++)
        await store.addKey({ accountId, name: `key ${at}`, hash: `hash ${at}`, prefix: 'rk_x', nowMs: at })
    })
    const { page } = await openSignedIn(pages, service, '#/keys')
    const rows = page.getByRole('table', { name: 'API keys' }).locator('tbody tr')
    await rows.nth(99).waitFor()
    expect(await rows.count()).toBe(100)
    await page.getByRole('button', { name: 'Load more' }).click()
    await rows.nth(199).waitFor()
    expect(await page.getByRole('button', { name: 'Load more' }).count()).toBe(0)
    await page.getByRole('button', { name: 'New key' }).first().click()
    await page.getByLabel('Name').fill('one more')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByRole('alert').getByText(/200/).waitFor()
  })
})

describePages('the keyboard', (pages) => {
  it('reaches every page, and dialogs keep the focus and give it back', async () => {
    const service = await serveConsole()
    const { page } = await openSignedIn(pages, service, '#/account')
    const focused = page.locator('button:focus', { hasText: 'New key' })
    await page.getByRole('heading', { level: 1, name: 'Account' }).waitFor()
    await page.getByRole('link', { name: 'API keys' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'API keys' }).waitFor()

    await page.getByRole('button', { name: 'Skip to the content' }).focus()
    await page.keyboard.press('Enter')
    await page.locator('main:focus').waitFor()
    await page.keyboard.press('Tab')
    await page.locator('label', { hasText: 'Show archived' }).locator('input:focus').waitFor()
    await page.keyboard.press('Tab')
    await focused.waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'New API key' }).waitFor()
    for (let press = 0; press < 20; press++) {
      await page.keyboard.press('Tab')
      const isInside = await page.evaluate(
        `document.activeElement === document.body || document.querySelector('dialog').contains(document.activeElement)`,
      )
      expect(isInside).toBe(true)
    }
    await page.keyboard.press('Escape')
    await focused.waitFor()
  })
})
