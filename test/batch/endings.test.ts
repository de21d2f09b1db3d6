/** Files of a batch whose extensions only their bytes decide. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createFamily, sha256 } from '../support/family.js'
import { ONE_PIXEL_PNG } from '../support/index.js'

const PICTURE = { name: 'fox', prompt: 'a fox' }
const FILM = { ...PICTURE, kind: 'video' }

it('a row that becomes a video gets a file with its own extension, and the earlier image stays', async () => {
  const { run, write, path, lock, created } = await createFamily([PICTURE])
  await run()
  const image = sha256(path('fox.png'))
  write([FILM])
  expect((await run(['--dry-run'])).stdout).toContain('create\tfox\tfox.{ext}\t')
  const { code, stderr } = await run()
  expect(code).toBe(0)
  expect(stderr).not.toContain('its name was kept')
  expect(lock().fox).toMatchObject({ kind: 'video', file: 'fox.mp4', sha256: sha256(path('fox.mp4')) })
  expect(sha256(path('fox.png'))).toBe(image)
  created()
  expect([(await run(['--check'])).code, (await run()).code, created()]).toEqual([0, 0, []])
})

it('a file of somebody else at the new extension is in the way before anything is sent', async () => {
  const { run, write, path, created } = await createFamily([PICTURE])
  await run()
  created()
  write([FILM])
  writeFileSync(path('fox.mp4'), 'mine')
  const { code, stderr } = await run()
  expect([code, created()]).toEqual([2, []])
  expect(stderr).toContain('fox.mp4 (fox, line 1): not created by this batch')
  expect(readFileSync(path('fox.mp4'), 'utf8')).toBe('mine')
})

it('a run of the same kind with another format gets the extension of its bytes', async () => {
  const jpeg = Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0]), Buffer.alloc(200)])
  let isJpeg = false
  let size = 20
  const engine = {
    async render({ folder }: { readonly folder: string }) {
      writeFileSync(join(folder, 'file'), isJpeg ? jpeg : Buffer.concat([ONE_PIXEL_PNG, Buffer.alloc(size)]))
      return [{ name: 'file', contentType: isJpeg ? 'image/jpeg' : 'image/png' }]
    },
  }
  const { run, write, lock, path } = await createFamily([PICTURE], { engine })
  await run()
  isJpeg = true
  write([{ ...PICTURE, prompt: 'another fox' }])
  expect((await run()).code).toBe(0)
  expect([lock().fox.file, existsSync(path('fox.png'))]).toEqual(['fox.jpg', true])
  expect((await run(['--check'])).code).toBe(0)
  // The lock file does not have the first picture any more.
  isJpeg = false
  size++
  write([{ ...PICTURE, prompt: 'a third fox' }])
  const again = await run()
  expect([again.code, lock().fox.file]).toEqual([12, 'fox-2.png'])
  expect(again.stderr).toContain(
    'fox.png was kept, because it is not as the lock file says. The result is in fox-2.png.',
  )
})
