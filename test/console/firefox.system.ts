/** Each page of the console, and the gallery, in Firefox: it appears without errors, and nothing is wider than the window. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { galleryHtml } from '../../src/gallery/index.js'
import type { Pages } from '../support/browser.js'
import { sessionCookie } from '../support/console-page.js'
import { ONE_PIXEL_PNG } from '../support/engines.js'
import { findFirefox } from '../support/find-firefox.js'
import { type FirefoxPage, openFirefox } from '../support/firefox.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { EMAIL, servePage } from './service-with-page.js'

/** The tests here open their pages in Firefox only. */
const NO_CHROMIUM: Pages = { open: () => Promise.reject(new Error('not used')) }

const path = findFirefox()

async function expectFit(page: FirefoxPage): Promise<void> {
  expect(await page.evaluate('document.documentElement.scrollWidth - window.innerWidth')).toBeLessThanOrEqual(
    0,
  )
}

describe.skipIf(path === undefined)('the pages in Firefox', () => {
  it('load without errors, and fit the window', async () => {
    const service = await servePage(NO_CHROMIUM)
    const picture = await service.create({ prompt: 'ثعلب a fox' })
    const film = await service.create({ prompt: 'a film' }, 'video')
    const page = await openFirefox(path ?? '')
    await page.goto(service.url)
    await page.becomesTrue(`document.querySelector('h1')?.textContent === 'Sign in'`)
    const target = { ...service, fetch: service.service.fetch, baseUrl: service.url }
    await page.setCookie(service.url, 'rushes_session', await sessionCookie(target, EMAIL))

    const seen: readonly (readonly [fragment: string, shown: string])[] = [
      ['#/runs', `document.querySelectorAll('[data-run]').length === 2`],
      [`#/runs/${picture.id}`, `document.querySelector('.output img')?.naturalWidth > 0`],
      ['#/new', `document.querySelector('.drop-zone')`],
      ['#/keys', `document.querySelector('table')?.textContent.includes('first')`],
      ['#/users', `document.querySelector('table')?.textContent.includes('${EMAIL}')`],
      ['#/credits', `document.querySelector('table')?.rows.length > 2`],
      ['#/account', `document.querySelector('table')?.textContent.includes('This browser')`],
    ]
    for (const [at, [fragment, shown]] of seen.entries()) {
      // Another query loads the page anew.
      await page.goto(`${service.url}/?${at}${fragment}`)
      await page.becomesTrue(shown)
      await expectFit(page)
    }
    // Firefox logs the 401 that shows the sign-in page.
    expect(page.complaints.filter((each) => !each.includes('401'))).toEqual([])

    // A Firefox without H.264 says so, and offers the download.
    await page.goto(`${service.url}/?film#/runs/${film.id}`)
    await page.becomesTrue(
      `/\\d+ × \\d+/.test(document.querySelector('.output-about')?.textContent) ||
       document.querySelector('.output')?.textContent.includes('This browser cannot play the file.')`,
    )
    expect(await page.evaluate(`document.querySelector('.output a[download]') !== null`)).toBe(true)

    const folder = temporaryFolder()
    writeFileSync(join(folder, 'a.png'), ONE_PIXEL_PNG)
    const file = {
      name: 'a.png',
      href: 'a.png',
      media: 'image',
      size: '1 KiB',
      ratio: 1,
      marks: undefined,
      isOpened: true,
    } as const
    const run = {
      id: 'run_1',
      prompt: 'a fox',
      model: 'acme/still-1',
      labels: [],
      parameters: [],
      where: 'local',
      time: 1e12,
      files: [file],
    }
    writeFileSync(join(folder, 'gallery.html'), galleryHtml({ runs: [run], notes: [] }))
    await page.goto(pathToFileURL(join(folder, 'gallery.html')).href)
    await page.becomesTrue(`document.querySelector('#grid img')?.naturalWidth > 0`)
    await expectFit(page)
    expect(page.complaints.filter((each) => !each.includes('401'))).toEqual([])
  })
})
