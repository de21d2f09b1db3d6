/** What a download that ends without its file leaves: nothing. */
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { host, WHOLE } from './breaking-host.js'
import { contents, download, newFolder, sha256, toPath } from './download-setup.js'

const BROKEN = [{ breakAfter: 100_000 }, { breakAfter: 0 }]

describe('nothing stays', () => {
  it('when the network broke; the next command starts anew', async () => {
    const folder = newFolder()
    const { error } = await download({ url: (await host(...BROKEN)).url, folder })
    expect(error?.hint).toBe('The run succeeded and is paid for.')
    expect(contents(folder)).toEqual([])
    const next = await host({})
    expect(await download({ url: next.url, folder })).toMatchObject({
      ok: true,
      file: { path: `${folder}/run-1.png`, sha256: sha256(WHOLE), content_type: 'image/png' },
    })
    expect(next.ranges()).toEqual([undefined])
  })

  it('after a signal', async () => {
    const folder = newFolder()
    const stop = new AbortController()
    const { url } = await host({ breakAfter: 150_000 })
    const onProgress = ({ receivedBytes = 0 }) => {
      if (receivedBytes > 50_000) stop.abort('SIGINT')
    }
    await expect(download({ url, folder, signal: stop.signal, onProgress })).rejects.toBe('SIGINT')
    expect(contents(folder)).toEqual([])
  })

  it('when the link has expired and the service cannot be asked for a fresh one', async () => {
    const folder = newFolder()
    const { url } = await host({ status: 403 })
    const freshUrl = () => Promise.reject(new Error('the service is away'))
    expect(await download({ url, folder, freshUrl })).toMatchObject({ ok: false })
    expect(contents(folder)).toEqual([])
  })

  it('when a file came under the name while the bytes arrived', async () => {
    const folder = newFolder()
    const path = join(folder, 'run-1.png')
    const onProgress = () => writeFileSync(path, 'mine')
    const { url } = await host({})
    expect(await download({ url, folder, onProgress })).toMatchObject({ ok: false })
    expect(contents(folder)).toEqual(['run-1.png'])
  })
})

it('the hidden name has at most 255 bytes', async () => {
  const folder = newFolder()
  const seen: string[] = []
  const { url } = await host({})
  const { target } = toPath(join(folder, `${'ü'.repeat(125)}.png`))
  const onProgress = () => void seen.push(...readdirSync(folder))
  expect(await download({ url, target, onProgress })).toMatchObject({ ok: true })
  const [hidden = ''] = seen.filter((name) => name.endsWith('.part'))
  expect(Buffer.byteLength(hidden)).toBeLessThanOrEqual(255)
})

it('several downloads of one output do not touch the bytes of one another', async () => {
  const folder = newFolder()
  const { url } = await host({})
  const results = await Promise.all([1, 2, 3].map(() => download({ url, folder, overwrite: true })))
  for (const result of results) expect(result).toMatchObject({ ok: true, file: { sha256: sha256(WHOLE) } })
  expect(contents(folder)).toEqual(['run-1.png'])
})
