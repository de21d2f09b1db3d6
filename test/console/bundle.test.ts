/** The files of the page, as the build leaves them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { readPage } from '../../src/service/console/page.js'
import { createBrowser, createConsoleService } from '../support/console.js'

const FOLDER = fileURLToPath(new URL('../../dist/console/', import.meta.url))
const MAX_BYTES = 60_000

const read = (name: string): Buffer => readFileSync(join(FOLDER, name))
const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).filter((name) => /\.\w+$/.test(name))
const plain = files.filter((name) => !/\.(br|gz)$/.test(name))

it('the build writes index.html and one script, style sheet and icon with a hash in their names', () =>
  expect(plain.map((name) => name.replaceAll('\\', '/').replace(/-[\w-]{10}\./, '-*.')).sort()).toEqual([
    'assets/console-*.css',
    'assets/console-*.js',
    'assets/icon-*.svg',
    'index.html',
  ]))

it('each file has a brotli and a gzip copy, less than 60 KB in total', () => {
  for (const name of plain) {
    expect(brotliDecompressSync(read(`${name}.br`)).equals(read(name)), `${name}.br`).toBe(true)
    expect(gunzipSync(read(`${name}.gz`)).equals(read(name)), `${name}.gz`).toBe(true)
  }
  const bytes = plain.map((name) => read(`${name}.br`).length).reduce((sum, each) => sum + each)
  expect(bytes).toBeLessThan(MAX_BYTES)
})

it('the service sends each file compressed and with its type, and index.html with a policy', async () => {
  const page = await readPage(FOLDER)
  const browser = createBrowser(await createConsoleService({ console: page }))
  for (const name of plain) {
    const path = name === 'index.html' ? '/' : `/${name}`
    const { status, header } = await browser.ask('HEAD', path, undefined, { 'accept-encoding': 'br' })
    expect([status, header('content-length')], path).toEqual([200, String(read(`${name}.br`).length)])
    expect(header('content-type'), path).toMatch(
      /^(text\/(html|javascript|css); charset=utf-8|image\/svg\+xml)$/,
    )
    expect(header('content-security-policy') !== undefined, path).toBe(name === 'index.html')
  }
})

it('index.html has no inline script or style, and no file refers to anything outside its folder', () => {
  const html = read('index.html').toString()
  expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/i)
  const linked = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, target]) => target)
  expect(linked).toHaveLength(3)
  for (const target of linked) expect(plain).toContain(target)
  for (const name of plain.filter((each) => each.endsWith('.css')))
    expect(read(name).toString()).not.toMatch(/url\(|@import/)
})
